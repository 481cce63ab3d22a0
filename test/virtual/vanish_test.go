package virtual_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// serve makes the API server serve widgets, or not; they are there all the same.
func serve(ctx context.Context, user client.Client, served bool) error {
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName(fixture.WidgetCRD)
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/served","value":%t}]`, served)
	return user.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, []byte(patch)))
}

// Scenario 82: a daemon whose kind is no longer served is stopped with that reason, and starts again when the kind is served. The number of
// running daemons is counted.
func TestADaemonStopsWhenItsKindIsNotServed(t *testing.T) {
	const identity = "vanishing.example.com"
	einmaltest.Run(t, func(w *einmaltest.World) {
		j, release := &fixture.Journal{}, make(chan struct{})
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()))
			einmal.For[fixture.Widget](op).Daemon("guard", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				<-ctx.Done()
				j.Add(c.Object.Name, context.Cause(ctx).Error())
				if c.Object.Name == "stubborn" {
					<-release
				}
				return nil
			}, einmal.WithoutFinalizer(), einmal.AbandonAfter(time.Minute))
			return op
		})
		stubborn := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stubborn"}}
		w.Create(&fixture.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}, stubborn)
		w.Advance(time.Minute)
		expectSamplesOf(w, identity, `daemons{handler="guard",state="running"} 2`)
		w.Delete(stubborn)
		w.Advance(10 * time.Minute)
		expectSamplesOf(w, identity, `daemons{handler="guard",state="running"} 1`, `daemons{handler="guard",state="abandoned"} 1`)
		close(release)
		for _, served := range []bool{false, true} {
			if err := serve(w.Context(), w.Client(), served); err != nil {
				w.Fatal(err)
			}
			w.Advance(10 * time.Minute)
			running := map[bool]int{true: 1}[served]
			expectSamplesOf(w, identity, fmt.Sprintf(`daemons{handler="guard",state="running"} %d`, running), `daemons{handler="guard",state="abandoned"} 0`)
		}
		w.Stop()
		want := []string{"the kind is no longer served, or its registration changed", "the operator is stopping"}
		if diff := cmp.Diff(want, j.Of("one")); diff != "" {
			w.Errorf("why it ended (-want +got):\n%s", diff)
		}
	})
}

func (w *virtualWorld) serve(t *testing.T, served bool) {
	t.Helper()
	if err := serve(t.Context(), w.User, served); err != nil {
		t.Fatal(err)
	}
}

// askedFor lets time go by, and tells how often paths with this end were asked for meanwhile.
func (w *virtualWorld) askedFor(end string, while time.Duration) int {
	var asked atomic.Int32
	stop := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, end) {
			asked.Add(1)
		}
		next.ServeHTTP(answer, r)
	})
	defer stop()
	w.Pass(while)
	return int(asked.Load())
}

// Scenario 82, for a replica that waits to be elected: it stops watching a kind that is no longer served, sends no useless requests for it, and
// watches it again when it is elected later.
func TestAReplicaThatWaitsLetsGoOfAKindThatVanishes(t *testing.T) {
	j := &fixture.Journal{}
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", fixture.Done(j, "make"))
	}, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Minute)
		w.serve(t, false)
		w.Pass(2 * time.Minute)
		if asked := w.askedFor("/widgets", time.Hour); asked > 0 {
			t.Errorf("widgets were asked for %d times while they were not served", asked)
		}
		w.serve(t, true)
		w.Pass(time.Minute)
		for _, name := range []string{"before", "after"} {
			if err := w.User.Create(t.Context(), fixture.NewUntypedWidget(name)); err != nil {
				t.Fatal(err)
			}
			w.Pass(5 * time.Minute)
			if diff := cmp.Diff([]string{"make 1"}, j.Of(name)); diff != "" {
				t.Errorf("calls for %s (-want +got):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff(3, w.Processes()); diff != "" {
			t.Errorf("processes: one that crashes, one that takes over, and another one (-want +got): %s", diff)
		}
	}, simulation.Fault{Kind: simulation.Standby}, simulation.Fault{
		Kind: simulation.CrashAfter, At: simulation.Point{What: "patch widgets." + fixture.Group + " default/before status", N: 1},
	})
}

// A slow handler writes nothing into an object that was deleted and re-created while it ran (scenario 20).
func TestALateWriteDoesNotLandOnAReCreatedObject(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnCreate("slow", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				<-time.After(10 * time.Second)
				c.Object.Status.Phase = c.Object.Spec.Color
				return nil
			})
			return op
		})
		made := func(color string) *fixture.Widget {
			return &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}, Spec: fixture.WidgetSpec{Color: color}}
		}
		w.Create(made("red"))
		w.Advance(5 * time.Second)
		w.Delete(made("red"))
		w.Create(made("blue"))
		for _, phase := range []string{"", "blue"} {
			w.Advance(8 * time.Second)
			found := made("")
			if w.Get(found); found.Status.Phase != phase {
				w.Errorf("the phase is %q, want %q: the handler of the old object wrote into the new one", found.Status.Phase, phase)
			}
		}
	})
}
