package einmal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// outside is what lives on when the operator's process does not: a system in which widgets are registered by name,
// and a note of every call of a handler.
type outside struct {
	processes int

	mu    sync.Mutex
	live  map[string]bool
	calls []string
}

func (o *outside) called(handler, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, handler+" "+name)
}

func (o *outside) register(name string, wanted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.live == nil {
		o.live = map[string]bool{}
	}
	o.live[name] = wanted
}

// left lists who is registered.
func (o *outside) left() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for name, registered := range o.live {
		if registered {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// handled lists the calls for one widget, sorted.
func (o *outside) handled(name string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []string
	for _, call := range o.calls {
		if strings.HasSuffix(call, " "+name) {
			found = append(found, call)
		}
	}
	slices.Sort(found)
	return found
}

func simulatedScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), addTestKinds(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func simulatedKinds(t *testing.T) *apiserver.Definitions {
	t.Helper()
	manifest, err := os.ReadFile("testdata/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := apiserver.ParseDefinitions(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return definitions
}

// lifeOperator makes an operator with a child, an effect outside, retries and a deletion.
func lifeOperator(world *outside, log *slog.Logger) func() simulation.Operator {
	return func() simulation.Operator {
		op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.Logger(log), einmal.StateNamespace("default"))
		widgets := einmal.For[Widget](op)
		apply := func(ctx context.Context, c *einmal.Change[Widget]) error {
			config := &corev1.ConfigMap{Data: map[string]string{"size": fmt.Sprint(c.Object.Spec.Size)}}
			config.Name = c.Object.Name
			if err := c.Apply(ctx, config); err != nil {
				return err
			}
			c.Object.Status.Phase = fmt.Sprintf("size %d", c.Object.Spec.Size)
			return nil
		}
		widgets.OnCreate("register", func(_ context.Context, c *einmal.Change[Widget]) error {
			world.called("register", c.Object.Name)
			world.register(c.Object.Name, true)
			return nil
		})
		widgets.OnCreate("configure", func(ctx context.Context, c *einmal.Change[Widget]) error {
			world.called("configure", c.Object.Name)
			if c.Attempt == 1 {
				return errors.New("not yet")
			}
			return apply(ctx, c)
		})
		widgets.OnUpdate("reconfigure", func(ctx context.Context, c *einmal.Change[Widget]) error {
			world.called("reconfigure", c.Object.Name)
			return apply(ctx, c)
		}, einmal.Field("spec.size"))
		widgets.OnDelete("unregister", func(_ context.Context, c *einmal.Change[Widget]) error {
			world.called("unregister", c.Object.Name)
			world.register(c.Object.Name, false)
			return nil
		})
		return op
	}
}

// lifeOfWidgets is what a user does: create, grow, delete.
func lifeOfWidgets(t *testing.T, w *simulation.World) {
	t.Helper()
	for _, name := range []string{"kept", "deleted"} {
		made := &Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: WidgetSpec{Size: 1}}
		if err := w.User.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	w.Pass(time.Minute)
	grown := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":2}}`))
	for _, name := range []string{"kept", "deleted"} {
		if err := w.User.Patch(t.Context(), &Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}, grown); err != nil {
			t.Fatal(err)
		}
	}
	w.Pass(time.Minute)
	if err := w.User.Delete(t.Context(), &Widget{ObjectMeta: metav1.ObjectMeta{Name: "deleted", Namespace: "default"}}); err != nil {
		t.Fatal(err)
	}
	w.Pass(10 * time.Minute)
}

// endState is what is left, without what differs from run to run.
func endState(t *testing.T, w *simulation.World) string {
	t.Helper()
	widget, config := &Widget{}, &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: "default", Name: "kept"}
	if err := errors.Join(w.User.Get(t.Context(), key, widget), w.User.Get(t.Context(), key, config)); err != nil {
		t.Fatal(err)
	}
	gone := types.NamespacedName{Namespace: "default", Name: "deleted"}
	left := []bool{
		apierrors.IsNotFound(w.User.Get(t.Context(), gone, &Widget{})),
		apierrors.IsNotFound(w.User.Get(t.Context(), gone, &corev1.ConfigMap{})),
	}
	var record struct {
		Base     string
		Handlers map[string]any
	}
	if err := json.Unmarshal([]byte(widget.Status.Records.Records[testIdentity]), &record); err != nil {
		t.Fatalf("the record %q: %v", widget.Status.Records.Records, err)
	}
	return fmt.Sprint(widget.Spec, widget.Status.Phase, widget.Finalizers, record, config.Data, len(config.OwnerReferences), left)
}

// fate is what happens to the operator in a simulation.
type fate struct {
	stop *simulation.Stop
	// lag is by how much its cache is stale, down how long it is not there after a crash.
	lag, down time.Duration
	// trouble goes on beside the life of the widgets, until its context ends.
	trouble func(context.Context, *simulation.World)
}

// simulate runs the life of the widgets in a bubble of its own. It tells how many processes of the operator there were.
func simulate(t *testing.T, kinds *apiserver.Definitions, fate fate) (state string, world *outside, requests []simulation.Request) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := testLog(t)
		world = &outside{}
		setup := simulation.Setup{
			Definitions: kinds, Scheme: simulatedScheme(t), Stop: fate.stop, Lag: fate.lag, Down: fate.down,
			Make: lifeOperator(world, slog.New(slog.NewTextHandler(log, nil))),
		}
		simulation.Run(t, setup, func(w *simulation.World) {
			if fate.trouble != nil {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go fate.trouble(ctx, w)
			}
			lifeOfWidgets(t, w)
			state, requests = endState(t, w), w.Requests()
			world.processes = w.Starts()
		})
	})
	return state, world, requests
}

// Principle 9: a crash before or after every request changes nothing about the end state; what was done outside is
// live once, and what was recorded is not done again. So it is with a stale cache, and when the user goes on changing
// and deleting while the operator is down.
func TestACrashAtAnyRequestChangesNothing(t *testing.T) {
	kinds := simulatedKinds(t)
	clean, _, _ := simulate(t, kinds, fate{})
	for name, world := range map[string]fate{
		"restarted at once": {}, "with a stale cache": {lag: time.Second},
		"restarted after the user is done": {down: 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) { crashEverywhere(t, kinds, clean, world) })
	}
}

// crashEverywhere finds the requests of a run without a crash, and then crashes before and after each of them.
func crashEverywhere(t *testing.T, kinds *apiserver.Definitions, clean string, in fate) {
	t.Helper()
	state, world, requests := simulate(t, kinds, in)
	if diff := cmp.Diff(clean, state); diff != "" {
		t.Fatalf("without a crash: %s", diff)
	}
	want := []string{"configure kept", "configure kept", "reconfigure kept", "register kept"}
	if diff := cmp.Diff(want, world.handled("kept")); diff != "" {
		t.Errorf("without a crash each handler runs once for its cause: %s", diff)
	}
	met, budget := 0, writes(requests)+writesOfACrash
	for i := range 2 * len(requests) {
		in.stop = &simulation.Stop{At: requests[i/2], After: i%2 == 1}
		t.Run(in.stop.String(), func(t *testing.T) {
			state, world, made := simulate(t, kinds, in)
			met += world.processes - 1 // Runs differ in their order, so not every request comes again.
			if diff := cmp.Diff(clean, state); diff != "" {
				t.Errorf("another end: %s", diff)
			}
			world.check(t, len(want)+handlersOfAPass)
			if n := writes(made); n > budget {
				t.Errorf("%d writes, want at most %d", n, budget)
			}
		})
	}
	if t.Logf("%d of %d crashes met", met, 2*len(requests)); met < len(requests) {
		t.Errorf("only %d of %d crashes were met", met, 2*len(requests))
	}
}

// check looks for what must not be left, and for handlers that ran too often.
func (o *outside) check(t *testing.T, calls int) {
	t.Helper()
	if left := o.left(); !cmp.Equal(left, []string{"kept"}) {
		t.Errorf("left outside: %q", left)
	}
	if ran := o.handled("kept"); len(ran) > calls {
		t.Errorf("more than the pass under way was repeated: %q", ran)
	}
}

// What a crash may cost: what was under way is done again.
const (
	handlersOfAPass = 2
	writesOfACrash  = 4
)

func writes(requests []simulation.Request) int {
	n := 0
	for _, made := range requests {
		if made.Write() {
			n++
		}
	}
	return n
}

// The must of quiet, principle 6: a day of objects that wait and look again each hour writes nothing.
func TestASimulatedDayWritesNothing(t *testing.T) {
	kinds := simulatedKinds(t)
	synctest.Test(t, func(t *testing.T) {
		var looked int
		var mu sync.Mutex
		setup := simulation.Setup{Definitions: kinds, Scheme: simulatedScheme(t), Make: func() simulation.Operator {
			op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.Logger(slog.New(slog.DiscardHandler)))
			einmal.For[Widget](op).OnCreate("wait", func(context.Context, *einmal.Change[Widget]) error {
				mu.Lock()
				defer mu.Unlock()
				looked++
				return einmal.RetryAfter(time.Hour, nil)
			})
			return op
		}}
		simulation.Run(t, setup, func(w *simulation.World) {
			for i := range 100 {
				made := &Widget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w-%d", i), Namespace: "default"}}
				if err := w.User.Create(t.Context(), made); err != nil {
					t.Fatal(err)
				}
			}
			w.Pass(time.Minute)
			before := len(w.Requests())
			w.Pass(24 * time.Hour)
			if n := len(w.Requests()) - before; n != 0 {
				t.Errorf("%d requests in a quiet day: %v", n, w.Requests()[before:])
			}
			mu.Lock()
			defer mu.Unlock()
			if looked != 100*25 {
				t.Errorf("looked %d times, want %d", looked, 100*25)
			}
		})
	})
}
