package validate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxCronJobName leaves room for what the name of a Job adds to that of its CronJob.
const maxCronJobName = validation.DNS1035LabelMaxLength - 11

// Labels that a Job gives its pods besides those with a prefix.
const (
	legacyJobName       = "job-name"
	legacyControllerUID = "controller-uid"
)

// Job checks a Job; of an existing one the selector and the template stay.
func Job(object, old *batchv1.Job) field.ErrorList {
	at := field.NewPath("spec")
	refused := append(jobSpec(at, &object.Spec), jobSelector(at, object)...)
	if old == nil {
		return refused
	}
	return join(refused,
		metavalidation.ValidateImmutableField(object.Spec.Selector, old.Spec.Selector, at.Child("selector")),
		metavalidation.ValidateImmutableField(object.Spec.Template, old.Spec.Template, at.Child("template")),
		metavalidation.ValidateImmutableField(object.Spec.Completions, old.Spec.Completions, at.Child("completions")),
	)
}

// jobSelector checks the selector of a Job, which the server makes unless the Job has one of its own.
func jobSelector(at *field.Path, job *batchv1.Job) field.ErrorList {
	here, spec := at.Child("selector"), &job.Spec
	if spec.Selector == nil {
		return field.ErrorList{field.Required(here, "")}
	}
	refused := labelSelector(here, spec.Selector)
	matches, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return refused
	}
	refused = append(refused, when(!matches.Matches(labels.Set(spec.Template.Labels)),
		field.Invalid(at.Child("template", "metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`"))...)
	if spec.ManualSelector != nil && *spec.ManualSelector {
		return refused
	}
	generated := labels.Set{
		legacyJobName: job.Name, batchv1.JobNameLabel: job.Name, legacyControllerUID: string(job.UID), batchv1.ControllerUidLabel: string(job.UID),
	}
	in := at.Child("template", "metadata", "labels")
	for _, label := range slices.Sorted(maps.Keys(generated)) {
		refused = append(refused, when(spec.Template.Labels[label] != generated[label],
			field.Invalid(in, spec.Template.Labels, fmt.Sprintf("must be '%s'", generated[label])))...)
	}
	return append(refused, when(!matches.Matches(generated), field.Invalid(here, spec.Selector, "`selector` not auto-generated"))...)
}

func jobSpec(at *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	policy, here := spec.Template.Spec.RestartPolicy, at.Child("template", "spec", "restartPolicy")
	return join(
		optionalAtLeast0(at.Child("parallelism"), spec.Parallelism),
		optionalAtLeast0(at.Child("completions"), spec.Completions),
		optionalAtLeast0(at.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds),
		optionalAtLeast0(at.Child("backoffLimit"), spec.BackoffLimit),
		optionalAtLeast0(at.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished),
		template(at.Child("template"), &spec.Template),
		when(policy == corev1.RestartPolicyAlways, field.Required(here, `valid values: "OnFailure", "Never"`)),
	)
}

// CronJob checks a CronJob.
func CronJob(object, old *batchv1.CronJob) field.ErrorList {
	at, spec := field.NewPath("spec"), &object.Spec
	refused := join(
		optionalAtLeast0(at.Child("startingDeadlineSeconds"), spec.StartingDeadlineSeconds),
		optionalAtLeast0(at.Child("successfulJobsHistoryLimit"), spec.SuccessfulJobsHistoryLimit),
		optionalAtLeast0(at.Child("failedJobsHistoryLimit"), spec.FailedJobsHistoryLimit),
		oneOf(at.Child("concurrencyPolicy"), spec.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent),
		timeZone(at.Child("timeZone"), spec.TimeZone),
		jobSpec(at.Child("jobTemplate", "spec"), &spec.JobTemplate.Spec),
	)
	if old == nil {
		refused = append(refused, when(len(object.Name) > maxCronJobName, field.Invalid(field.NewPath("metadata", "name"), object.Name,
			fmt.Sprintf("must be no more than %d characters", maxCronJobName)))...)
	}
	if spec.Schedule == "" {
		return append(refused, field.Required(at.Child("schedule"), ""))
	}
	return append(refused, when(!isSchedule(spec.Schedule), field.Invalid(at.Child("schedule"), spec.Schedule, "is not a cron schedule"))...)
}

// timeZone checks the name of a time zone. The API server has no zone "Local".
func timeZone(at *field.Path, name *string) field.ErrorList {
	if name == nil {
		return nil
	}
	_, err := time.LoadLocation(*name)
	return when(err != nil || *name == "" || strings.EqualFold(*name, "Local"), field.Invalid(at, *name, "unknown time zone "+*name))
}

// isSchedule reports whether a text is a schedule of cron: five fields, or one of the words for common ones.
func isSchedule(text string) bool {
	if every, found := strings.CutPrefix(text, "@every "); found {
		_, err := time.ParseDuration(every)
		return err == nil
	}
	if strings.HasPrefix(text, "@") {
		return slices.Contains([]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}, text)
	}
	limits := [][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}
	fields := strings.Fields(text)
	if len(fields) != len(limits) {
		return false
	}
	for i, part := range fields {
		for item := range strings.SplitSeq(part, ",") {
			if !isScheduleItem(item, limits[i]) {
				return false
			}
		}
	}
	return true
}

// isScheduleItem checks one item of a field of a schedule: *, 5, 1-5, each with an optional step, or the name of a month or day.
func isScheduleItem(item string, limits [2]int) bool {
	form := regexp.MustCompile(`^(?:[*?]|(\d{1,2})(?:-(\d{1,2}))?|([A-Za-z]{3})(?:-[A-Za-z]{3})?)(?:/([1-9]\d*))?$`)
	found := form.FindStringSubmatch(item)
	if found == nil || found[3] != "" && limits[1] != 12 && limits[1] != 6 {
		return false
	}
	for _, number := range found[1:3] {
		value, err := strconv.Atoi(number)
		if err == nil && (value < limits[0] || value > limits[1]) {
			return false
		}
	}
	return true
}

// DisruptionBudget checks a PodDisruptionBudget.
func DisruptionBudget(object, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	at, spec := field.NewPath("spec"), &object.Spec
	return join(
		when(spec.MinAvailable != nil && spec.MaxUnavailable != nil, field.Invalid(at, object.Name, "minAvailable and maxUnavailable cannot be both set")),
		numberOrPercent(at.Child("minAvailable"), spec.MinAvailable),
		atMost100Percent(at.Child("minAvailable"), spec.MinAvailable),
		numberOrPercent(at.Child("maxUnavailable"), spec.MaxUnavailable),
		atMost100Percent(at.Child("maxUnavailable"), spec.MaxUnavailable),
		labelSelector(at.Child("selector"), spec.Selector),
	)
}

// JobFields are the fields of a Job that are checked.
func JobFields() []string { return below("spec", jobFields()) }

func jobFields() []string {
	return append(templateFields(), "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
		"completionMode=NonIndexed", "suspend", "podReplacementPolicy=TerminatingOrFailed", "selector", "manualSelector=false")
}

// CronJobFields are the fields of a CronJob that are checked.
func CronJobFields() []string {
	return append(below("spec.jobTemplate.spec", jobFields()), below("spec", []string{
		"schedule", "timeZone", "startingDeadlineSeconds", "concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit",
		"jobTemplate.metadata",
	})...)
}

// DisruptionBudgetFields are the fields of a PodDisruptionBudget that are checked.
func DisruptionBudgetFields() []string {
	return below("spec", []string{"minAvailable", "maxUnavailable", "selector"})
}
