package virtual_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// staleAnswer replaces an object in a list, or in the first events of a watch, by an older state of it, as an API server does whose cache is
// behind.
type staleAnswer struct {
	http.ResponseWriter

	older map[string]any
}

// Write hands on a list, or one event.
func (s staleAnswer) Write(text []byte) (int, error) {
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		return s.ResponseWriter.Write(text)
	}
	items, _ := answer["items"].([]any)
	for i, item := range items {
		if s.of(item) {
			items[i] = s.older
		}
	}
	if answer["type"] == "ADDED" && s.of(answer["object"]) {
		answer["object"] = s.older
	}
	stale, err := json.Marshal(answer)
	if err == nil {
		_, err = s.ResponseWriter.Write(append(stale, '\n'))
	}
	return len(text), err
}

func (s staleAnswer) of(item any) bool {
	object, _ := item.(map[string]any)
	name, _, _ := unstructured.NestedString(object, "metadata", "name")
	return name == s.older["metadata"].(map[string]any)["name"] //nolint:forcetypeassert // It has metadata.
}

// Flush sends what was written.
func (s staleAnswer) Flush() {
	if flusher, can := s.ResponseWriter.(http.Flusher); can {
		flusher.Flush()
	}
}

// restartWithOldList handles an object for some time, and starts again with a list that shows it as it was created.
func restartWithOldList(t *testing.T, one *unstructured.Unstructured, handled time.Duration, declare func(*einmal.Operator)) *fixture.Log {
	t.Helper()
	log := &fixture.Log{}
	virtually(t, log, declare, func(t *testing.T, w *virtualWorld) {
		w.Stop()
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.start()
		w.Pass(handled)
		w.Stop()
		list := "/" + strings.ToLower(one.GetKind()) + "s"
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, list) {
				answer = staleAnswer{ResponseWriter: answer, older: one.Object}
			}
			next.ServeHTTP(answer, r)
		})
		w.start()
		w.Pass(10 * time.Minute)
	})
	return log
}

func rawOne(version, kind string) *unstructured.Unstructured {
	one := &unstructured.Unstructured{}
	one.SetAPIVersion(version)
	one.SetKind(kind)
	one.SetNamespace("default")
	one.SetName("one")
	return one
}

// In a manager that may be one of several replicas the first handler of an object follows a live read: the first list can be older
// than what the replica before has written.
func TestAFirstListThatIsOldRepeatsNoHandler(t *testing.T) {
	one := rawOne(fixture.Group+"/v1", "Widget")
	one.Object["spec"] = map[string]any{"size": int64(1)}
	made := 0
	restartWithOldList(t, one, time.Minute, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error {
			made++
			return nil
		})
	})
	if made != 1 {
		t.Errorf("the handler ran %d times, want once", made)
	}
}

// A first list that is older than the record does not make the record count as lost, also where the kind has no conditions.
func TestAFirstListThatIsOldLosesNoRecord(t *testing.T) {
	one := rawOne("v1", "ConfigMap")
	const untilWatermark = time.Hour
	log := restartWithOldList(t, one, untilWatermark, func(op *einmal.Operator) {
		einmal.For[corev1.ConfigMap](op).OnCreate("make", func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil })
	})
	if lines := log.Count("msg~record lost"); lines != 0 {
		t.Errorf("a record counts as lost: %s", log.String())
	}
}

// After a write of the status nothing is decided from what the cache has shown before it. The record is older there, which shows by its number, but
// the content is older too: the handler's own change is not in it.
func TestAnOldEventAfterAWriteOfTheStatusRunsNothingAgain(t *testing.T) {
	resized := 0
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnUpdate("resize", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			resized++
			c.Object.Spec.Color = "painted"
			return nil
		}, einmal.Fields("spec.size", "spec.color"))
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		fixture.Must(t, w.User.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":2}}`))))
		w.Pass(500 * time.Millisecond)
		// The event of this edit arrives after the outcome is written to the status, and does not show it.
		fixture.Must(t, w.User.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`))))
		w.Pass(time.Minute)
	}, simulation.Fault{Kind: simulation.StaleCache})
	if resized != 1 {
		t.Errorf("the handler ran %d times, want once", resized)
	}
}

// A related object that changes while the handler runs triggers another run.
func TestARelatedChangeDuringARunIsNotLost(t *testing.T) {
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).Reconcile("sync", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				said.Add("woken by %v", c.TriggeredBy)
				<-time.After(10 * time.Second)
				return nil
			}, einmal.Watches(namedIn))
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		said.Said()
		config := fixture.NewConfigMap("team", 1)
		config.Data["for"] = "one"
		w.Create(config)
		w.Advance(5 * time.Second)
		said.Expect(w, "woken by [ConfigMap default/team added]")
		w.Patch(config, `{"data":{"size":"2"}}`)
		w.Advance(time.Minute)
		said.Expect(w, "woken by [ConfigMap default/team modified]")
	})
}

// A foreign object that appears between the look and the apply is not taken over, unless Adopt allows it.
func TestApplyDoesNotTakeOverAnObjectThatAppearsMeanwhile(t *testing.T) { //nolint:gocognit // One story, told row by row.
	for _, adopt := range []bool{false, true} {
		t.Run(fmt.Sprint("adopt ", adopt), func(t *testing.T) {
			var failed []error
			virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
				einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
					var options []einmal.ApplyOption
					if adopt {
						options = append(options, einmal.Adopt())
					}
					failed = append(failed, c.Apply(ctx, fixture.NewConfigMap("child", 1), options...))
					return nil
				})
			}, func(t *testing.T, w *virtualWorld) {
				foreign := fixture.NewConfigMap("child", 1)
				foreign.Data = map[string]string{"owner": "other"}
				w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
					if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") && foreign.UID == "" {
						if err := w.User.Create(r.Context(), foreign); err != nil {
							t.Error(err)
						}
					}
					next.ServeHTTP(answer, r)
				})
				fixture.Must(t, w.User.Create(t.Context(), fixture.NewRedWidget("one")))
				w.Pass(time.Minute)
				fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
				taken := len(foreign.OwnerReferences) > 0 || foreign.Data["size"] != ""
				if len(failed) != 1 || (failed[0] == nil) != adopt || taken != adopt {
					t.Errorf("Apply returned %v, and left %v with the owners %v", failed, foreign.Data, foreign.OwnerReferences)
				}
			})
		})
	}
}
