package einmaltest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// Which of two objects is handled first differs between runs. What a user does to the first one is compared with a run in which the user does it
// to the same object.
func TestWhatUsersDoIsComparedWithTheSameObject(t *testing.T) {
	plays := 0
	scenario := func(w *World) {
		plays++
		w.Start(func(*Process) *einmal.Operator {
			op := einmal.New("users.example.com", einmal.Permissions(&corev1.Pod{}, "list"))
			configs := einmal.For[corev1.ConfigMap](op)
			configs.OnCreate("look", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return c.Client.List(ctx, &corev1.PodList{}, client.InNamespace("default"))
			})
			return op
		})
		names := []string{"a", "b"}
		if plays == 2 { // The run that is judged, after the one without faults.
			names = []string{"b", "a"}
		}
		for _, name := range names {
			w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
			w.Advance(500 * time.Millisecond)
		}
		w.Advance(10 * time.Minute)
		for _, name := range names {
			if !w.Get(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}) {
				w.Errorf("%s is gone", name)
			}
		}
	}
	schedule, err := simulation.ParseSchedule("user deletes the object during: list pods default/ by look #1")
	if err != nil {
		t.Fatal(err)
	}
	e := newExplorer(scenario, nil)
	e.clean = play(t, scenario, e.setup(nil))
	e.playOne(t, 0, schedule)
	if e.found != nil || len(e.unmet) > 0 || len(e.inert) > 0 {
		t.Errorf("found %v, not met %v, without effect %v", e.found, e.unmet, e.inert)
	}
	if plays != 3 {
		t.Errorf("%d runs were played, want 3: without faults, the one that is judged, and the one that it is compared with", plays)
	}
}
