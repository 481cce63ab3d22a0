package engine

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// What people see when a record was lost.
const (
	lostCondition = "StateLost"
	lostReason    = "RecordMissing"
	lostSentence  = "the record of what was done is missing, although every object as old as this one has had one: " +
		"it counts as created. If that is wrong, set the annotation %s to a new value: the create handlers run once for it"
)

// tellLost warns once: in the log and as an event. The condition goes with the record.
func (p *pass) tellLost() {
	annotation := object.RecreateAnnotation(p.settings.Identity)
	p.log.Warn("the record was lost while the operator was down: create handlers do not run", "wayOut", annotation)
	subject := &unstructured.Unstructured{Object: object.Body{
		"metadata": object.Body{
			"name": p.key.Name, "namespace": p.key.Namespace, "uid": p.memory.uid, "resourceVersion": version(p.body),
		},
	}}
	subject.SetGroupVersionKind(p.kind.GVK)
	if p.events != nil {
		p.events.Eventf(subject, nil, corev1.EventTypeWarning, lostCondition, "Resume", lostSentence, annotation)
	}
}

// lookCloser reads the object live where the condition of a lost record is to be written: the handlers' type need not
// have conditions, and those of others must stay.
func (p *pass) lookCloser(ctx context.Context) error {
	asked := p.record != nil && p.record.Recreated != p.plan.Record.Recreated
	if !p.description.HasConditions || p.exact || p.plan.Cause != cause.Lost && !asked {
		return nil
	}
	live, err := p.objects.Get(ctx, p.key)
	if err != nil {
		return err
	}
	if err := p.openRaw(live); err != nil {
		return err
	}
	return p.decide()
}

// conditionsField is where the conventions of Kubernetes put conditions.
func conditionsField() object.Path { return object.Path{"status", "conditions"} }

// markLost adds the condition to the document of the status when the record was lost, and ends it when a person has
// asked for the create handlers. It expects the list of conditions to be as it was.
func (p *pass) markLost(w *work, document *patch.Document) {
	lost, asked := p.plan.Cause == cause.Lost, p.record != nil && p.record.Recreated != w.record.Recreated
	if !p.description.HasConditions || !lost && !asked {
		return
	}
	value, _ := object.Get(p.base, conditionsField()...)
	listed, _ := value.([]any)
	conditions := make([]any, 0, len(listed)+1)
	was := ""
	for _, item := range listed {
		if known, is := item.(object.Body); is && object.Text(known, "type") == lostCondition {
			was = object.Text(known, "status")
			continue
		}
		conditions = append(conditions, item)
	}
	now := metav1.ConditionFalse
	if lost {
		now = metav1.ConditionTrue
	}
	if was == string(now) || was == "" && now == metav1.ConditionFalse {
		return
	}
	generation, _ := object.Get(p.body, "metadata", "generation")
	conditions = append(conditions, object.Body{
		"type": lostCondition, "status": string(now), "reason": lostReason,
		"message":            "see the annotation " + object.RecreateAnnotation(p.settings.Identity),
		"observedGeneration": generation,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	})
	document.Test(conditionsField())
	document.Edit(patch.Edit{Path: conditionsField(), Value: conditions})
}
