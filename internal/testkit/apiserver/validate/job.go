package validate

import (
	"fmt"
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

// Job checks a Job; of an existing one the selector and the template stay.
func Job(object, old *batchv1.Job) field.ErrorList {
	at := field.NewPath("spec")
	refused := jobSpec(at, &object.Spec)
	if old != nil {
		suspended := old.Spec.Suspend != nil && *old.Spec.Suspend && old.Status.StartTime == nil
		refused = append(refused, metavalidation.ValidateImmutableField(object.Spec.Selector, old.Spec.Selector, at.Child("selector"))...)
		if !suspended {
			refused = append(refused, metavalidation.ValidateImmutableField(object.Spec.Template, old.Spec.Template, at.Child("template"))...)
		}
		if old.Spec.CompletionMode == nil || *old.Spec.CompletionMode == batchv1.NonIndexedCompletion {
			refused = append(refused, metavalidation.ValidateImmutableField(object.Spec.Completions, old.Spec.Completions, at.Child("completions"))...)
		}
		return append(refused, metavalidation.ValidateImmutableField(object.Spec.CompletionMode, old.Spec.CompletionMode, at.Child("completionMode"))...)
	}
	if object.Spec.Selector == nil {
		return append(refused, field.Required(at.Child("selector"), ""))
	}
	matches, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
	return append(refused, when(err == nil && !matches.Matches(labels.Set(object.Spec.Template.Labels)),
		field.Invalid(at.Child("template", "metadata", "labels"), object.Spec.Template.Labels, "`selector` does not match template `labels`"))...)
}

func jobSpec(at *field.Path, spec *batchv1.JobSpec) field.ErrorList {
	policy, here := spec.Template.Spec.RestartPolicy, at.Child("template", "spec", "restartPolicy")
	indexed := spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion
	return join(
		optionalAtLeast0(at.Child("parallelism"), spec.Parallelism),
		optionalAtLeast0(at.Child("completions"), spec.Completions),
		optionalAtLeast0(at.Child("activeDeadlineSeconds"), spec.ActiveDeadlineSeconds),
		optionalAtLeast0(at.Child("backoffLimit"), spec.BackoffLimit),
		optionalAtLeast0(at.Child("ttlSecondsAfterFinished"), spec.TTLSecondsAfterFinished),
		optionalOneOf(at.Child("completionMode"), spec.CompletionMode, batchv1.NonIndexedCompletion, batchv1.IndexedCompletion),
		when(indexed && spec.Completions == nil, field.Required(at.Child("completions"), "when completion mode is Indexed")),
		optionalOneOf(at.Child("podReplacementPolicy"), spec.PodReplacementPolicy, batchv1.Failed, batchv1.TerminatingOrFailed),
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
		numberOrPercent(at.Child("maxUnavailable"), spec.MaxUnavailable),
		labelSelector(at.Child("selector"), spec.Selector),
		optionalOneOf(at.Child("unhealthyPodEvictionPolicy"), spec.UnhealthyPodEvictionPolicy, policyv1.AlwaysAllow, policyv1.IfHealthyBudget),
	)
}

// JobFields are the fields of a Job that are checked.
func JobFields() []string { return below("spec", jobFields()) }

func jobFields() []string {
	return append(templateFields(), "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
		"completionMode", "suspend", "podReplacementPolicy", "selector", "manualSelector")
}

// CronJobFields are the fields of a CronJob that are checked.
func CronJobFields() []string {
	return append(below("spec.jobTemplate.spec", jobFields()), below("spec", []string{
		"schedule", "startingDeadlineSeconds", "concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit",
		"jobTemplate.metadata",
	})...)
}

// DisruptionBudgetFields are the fields of a PodDisruptionBudget that are checked.
func DisruptionBudgetFields() []string {
	return below("spec", []string{"minAvailable", "maxUnavailable", "selector", "unhealthyPodEvictionPolicy"})
}
