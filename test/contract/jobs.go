package contract

import "net/http"

func (w *world) jobs() target     { return w.in("batch/v1", "jobs", "Job") }
func (w *world) cronJobs() target { return w.in("batch/v1", "cronjobs", "CronJob") }

// work is the spec of a Job that is suspended, so that nothing runs.
func work() object {
	return object{"suspend": true, "template": object{"spec": object{
		"restartPolicy": "Never", "containers": []object{{"name": "main", "image": "example.org/app:1"}},
	}}}
}

func jobs() []behaviour {
	return []behaviour{
		{"job: gets defaults and a selector of its own", func(w *world) {
			made := w.jobs().create("a", object{"spec": work()})
			w.want(made, "spec.completions", 1)
			w.want(made, "spec.parallelism", 1)
			w.want(made, "spec.backoffLimit", 6)
			w.want(made, "spec.completionMode", "NonIndexed")
			w.want(made, "spec.podReplacementPolicy", "TerminatingOrFailed")
			own := object{"batch.kubernetes.io/controller-uid": made.uid()}
			w.want(made, "spec.selector.matchLabels", own)
			w.want(made, "spec.template.metadata.labels", object{
				"batch.kubernetes.io/controller-uid": made.uid(), "controller-uid": made.uid(), "batch.kubernetes.io/job-name": "a", "job-name": "a",
			})
		}},
		{"job: a bad spec is 422", func(w *world) {
			always := work().with("template.spec.restartPolicy", "Always")
			w.jobs().invalid(w.jobs().new("a", object{"spec": always}), `spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`)
			w.jobs().invalid(w.jobs().new("a", object{"spec": work().with("backoffLimit", -1)}), "spec.backoffLimit: Invalid value: -1")
		}},
		{"job: its template cannot be changed", func(w *world) {
			w.jobs().create("a", object{"spec": work().with("suspend", nil).with("parallelism", 0)})
			change := object{"spec": object{"template": object{"spec": object{"restartPolicy": "OnFailure"}}}}
			w.eventually("the Job has begun, and its template is fixed", func() bool {
				return w.jobs().merge("a", change).code == http.StatusUnprocessableEntity
			})
			w.jobs().merge("a", change).refused(http.StatusUnprocessableEntity, "Invalid", "spec.template: Invalid value", "field is immutable")
		}},
		{"job: a deletion that says nothing leaves what it owns", func(w *world) {
			owner := w.jobs().create("a", object{"spec": work()})
			w.configMaps().create("child", owned(owner))
			w.jobs().delete("a").ok()
			w.eventually("the Job is gone", func() bool { return w.jobs().gone("a") })
			w.want(w.configMaps().get("child"), "metadata.ownerReferences", nil)
		}},
		{"job: a CronJob gets defaults", func(w *world) {
			made := w.cronJobs().create("a", object{"spec": object{"schedule": "*/5 0 1-7 jan mon", "jobTemplate": object{"spec": work()}}})
			w.want(made, "spec.concurrencyPolicy", "Allow")
			w.want(made, "spec.suspend", false)
			w.want(made, "spec.successfulJobsHistoryLimit", 3)
			w.want(made, "spec.failedJobsHistoryLimit", 1)
		}},
		{"job: a bad schedule is 422", func(w *world) {
			for _, schedule := range []string{"often", "* * * *", "60 * * * *", "* * * * 8", "@sometimes", "*/0 * * * *"} {
				body := w.cronJobs().new("a", object{"spec": object{"schedule": schedule, "jobTemplate": object{"spec": work()}}})
				w.cronJobs().invalid(body, "spec.schedule: Invalid value")
			}
			w.cronJobs().invalid(w.cronJobs().new("a", object{"spec": object{"jobTemplate": object{"spec": work()}}}), "spec.schedule: Required value")
		}},
		{"job: an unknown time zone is 422", func(w *world) {
			for _, zone := range []string{"Mars/Phobos", "Local", ""} {
				body := w.cronJobs().new("a", object{"spec": object{"schedule": "@daily", "timeZone": zone, "jobTemplate": object{"spec": work()}}})
				w.cronJobs().invalid(body, "spec.timeZone: Invalid value")
			}
			w.cronJobs().create("a", object{"spec": object{"schedule": "@daily", "timeZone": "Europe/Berlin", "jobTemplate": object{"spec": work()}}})
		}},
	}
}

func scaling() []behaviour {
	return []behaviour{
		{"scale: that of a Deployment is served or refused loudly", func(w *world) {
			w.deployments().create("a", workload())
			w.deployments().read("a/scale").servedOr501(http.StatusOK, "deployments/scale is not served here")
		}},
		{"scale: that of a custom kind is served or refused loudly", func(w *world) {
			w.gadgets().create(w.namespace, object{"spec.size": 3})
			w.gadgets().read(w.namespace+"/scale").servedOr501(http.StatusOK, "gadgets/scale is not served here")
			w.gadgets().delete(w.namespace).ok()
		}},
	}
}
