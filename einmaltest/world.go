package einmaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// Scenario is what users do, and what they expect. It must do the same each time that it is played, and make all that
// it needs again: fakes of outside systems too. What it expects should hold however often the operator crashes meanwhile, and
// when it is down for five minutes. After it ten more minutes go by before the ends are compared.
type Scenario func(w *World)

// World is a cluster in virtual time, without nodes and without the controllers of Kubernetes, but with its garbage collector and its namespace
// controller: time goes by only where the scenario lets it. It is the testing.TB of one run of the scenario: what fails there
// belongs to that run. Its methods are for the scenario's own goroutine.
type World struct {
	testing.TB

	setup    simulation.Setup
	sim      *simulation.World
	make     func(*simulation.Process) simulation.Operator
	stop     context.CancelFunc
	reacting sync.WaitGroup
	outcomes map[string]string
	quiet    bool
	allowed  allowed
	previous func(*simulation.Process) simulation.Operator

	mu       sync.Mutex
	failures []string
	// simulatorFailures are the failures that the simulation found.
	simulatorFailures []string
}

// Start starts the operator; make makes it for each process: once now, and again after each crash. The first Start
// also gives the world the operator's kinds, so it comes before any object.
func (w *World) Start(make func(p *Process) *einmal.Operator) {
	w.Helper()
	w.Install(make)
	if w.sim.Running() {
		w.Fatal("the operator runs already: Stop it first")
	}
	w.sim.Start(w.versions())
}

// UpgradeFrom says what the operator's previous version is. The faults of the dimension Updates begin with it, where Start comes later,
// and replace it by the version of Start. In other runs it never runs.
func (w *World) UpgradeFrom(make func(p *Process) *einmal.Operator) {
	w.previous = func(p *simulation.Process) simulation.Operator { return make(&Process{process: p}) }
}

// versions are the operators that Start starts.
func (w *World) versions() simulation.Versions {
	return simulation.Versions{Current: w.make, Previous: w.previous, Other: w.other()}
}

// other is another operator that handles the same objects: it has its own records and finalizers there.
func (w *World) other() func(*simulation.Process) simulation.Operator {
	if !w.setup.Schedule.Has(simulation.TwoOperators) || len(w.sim.Kinds()) == 0 {
		return nil
	}
	return func(*simulation.Process) simulation.Operator {
		op := einmal.New(simulation.Another, einmal.StateNamespace(simulation.AnotherHome))
		nothing := func(context.Context, *einmal.Change[unstructured.Unstructured]) error { return nil }
		for _, kind := range w.sim.Kinds() {
			handled := einmal.For[unstructured.Unstructured](op, einmal.GVK(kind.Group, kind.Version, kind.Kind))
			handled.OnCreate("created", nothing)
			handled.OnUpdate("updated", nothing)
			handled.OnDelete("deleted", nothing)
		}
		return op
	}
}

// Install gives the world the kinds of the operator without starting it, so that there can be objects before. Start with
// the same operator then starts it.
func (w *World) Install(make func(p *Process) *einmal.Operator) {
	w.Helper()
	w.make = func(p *simulation.Process) simulation.Operator { return make(&Process{process: p}) }
	if w.sim != nil {
		return
	}
	var err error
	if w.sim, err = simulation.New(w.setup, make(&Process{})); err != nil {
		w.Fatalf("the world has no beginning: %v", err)
	}
}

// Stop stops the operator in order, as a cluster does when it is updated, and waits until it has ended.
func (w *World) Stop() {
	w.Helper()
	w.begun().Stop()
}

// Kill ends the operator without order, as kill -9 and the loss of a node do: what it has not written yet is lost. It
// stays down until the next Start or Restart.
func (w *World) Kill() {
	w.Helper()
	w.begun().Kill()
}

// Restart stops the operator in order and starts it again.
func (w *World) Restart() {
	w.Helper()
	w.begun().Stop()
	w.sim.Start(w.versions())
}

// begun is the world after its beginning.
func (w *World) begun() *simulation.World {
	w.Helper()
	if w.sim == nil {
		w.Fatal("there is no world yet: Start or Install the operator first, so that its kinds are known")
	}
	return w.sim
}

// Advance lets virtual time go by: timers fire, caches catch up, handlers run.
func (w *World) Advance(d time.Duration) {
	w.Helper()
	w.begun()
	w.passIdle(d)
}

// shortestIdle is the least time that goes by around an idle moment, so that the operator can repair in time what is changed then.
const shortestIdle = 2 * time.Minute

// passIdle lets virtual time go by. If it is long enough, nothing happens at half of it but the faults of an idle moment.
func (w *World) passIdle(d time.Duration) {
	if d < shortestIdle {
		w.sim.Pass(d)
		return
	}
	w.sim.Pass(d / 2) //nolint:mnd // In the middle.
	w.sim.Idle()
	w.sim.Pass(d - d/2) //nolint:mnd // The rest.
}

// Client reads and writes with all rights and without a cache.
func (w *World) Client() client.Client {
	w.Helper()
	return w.begun().User
}

// Create creates objects, as a user does.
func (w *World) Create(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		if err := w.Client().Create(w.Context(), object); err != nil {
			w.Fatalf("create %s: %v", object.GetName(), err)
		}
	}
}

// Apply applies a manifest of YAML documents, as kubectl apply --server-side does.
func (w *World) Apply(manifest string) {
	w.Helper()
	for document := range strings.SplitSeq("\n"+manifest, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.Fatalf("the manifest is no YAML: %v\n%s", err, document)
		}
		if len(object.Object) == 0 {
			continue
		}
		configuration := client.ApplyConfigurationFromUnstructured(object)
		if err := w.Client().Apply(w.Context(), configuration, client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			w.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// Patch changes an object by a JSON merge patch, such as {"spec":{"size":2}}, and reads the result into it.
func (w *World) Patch(object client.Object, merge string) {
	w.Helper()
	if err := w.Client().Patch(w.Context(), object, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		w.Fatalf("patch %s: %v", object.GetName(), err)
	}
	if kind, err := w.Client().GroupVersionKindFor(object); err == nil {
		w.sim.NoteEdit(kind.Kind, object.GetNamespace(), object.GetName(), merge)
	}
}

// Delete asks for the deletion of objects; those that are gone already are no failure.
func (w *World) Delete(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		if err := w.Client().Delete(w.Context(), object); client.IgnoreNotFound(err) != nil {
			w.Fatalf("delete %s: %v", object.GetName(), err)
		}
	}
}

// Get reads an object by its namespace and name. It is false if there is none.
func (w *World) Get(object client.Object) bool {
	w.Helper()
	err := w.Client().Get(w.Context(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		w.Fatalf("read %s: %v", object.GetName(), err)
	}
	return true
}

// Outcome says how something outside of the cluster has ended, such as the users that a database has. Explore expects the
// same text, as fmt.Sprint gives it, whatever goes wrong; so leave out what is made by chance.
func (w *World) Outcome(name string, value any) { w.outcomes[name] = fmt.Sprint(value) }

// Process is one process of the operator. What a handler does outside of the cluster belongs to it, so that a process
// that has crashed does nothing more.
type Process struct{ process *simulation.Process }

// Effect does something outside of the cluster that must not happen twice, such as a payment or a mail. The fake of an outside system
// calls it around each such effect, so that Explore can crash the process before and after: then do is not called, or its answer is lost, and
// the error must go back to the handler, like any other failure of the system. Work outside of the cluster that goes through neither
// Effect nor IdempotentEffect is invisible to Explore: it is not disturbed, and not counted.
//
// The name says what is done to what, such as "charge acme", the same in each run; with an idempotency token in it, each token counts
// on its own. Explore expects no more successful calls than in a run without faults, whatever they return. The value is not used.
// Effects happen one at a time, so that do needs no lock.
func (p *Process) Effect(name string, do func() (value any, err error)) error {
	return p.effect(name, false, do)
}

// IdempotentEffect does something outside of the cluster that may be repeated, such as setting a password to a given value. It is as
// Effect but for what Explore expects: that the value which do returns, what the outside system holds afterwards, changes no more often than in a run
// without faults. The value is not kept, and not shown; return nil where there is none.
func (p *Process) IdempotentEffect(name string, do func() (value any, err error)) error {
	return p.effect(name, true, do)
}

func (p *Process) effect(name string, idempotent bool, do func() (value any, err error)) error {
	if p.process == nil {
		return errors.New("an effect of no process: effects are for handlers, not for the making of the operator")
	}
	if err := p.process.Effect(name, idempotent, do); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Call is one attempt of a handler.
type Call struct {
	Handler, Kind, Namespace, Name string
	Reason                         einmal.Reason
	// Attempt counts from 1.
	Attempt int
	// Outcome is how it ended: done, failed (for good), retry or waiting.
	Outcome string
}

// String is one line: create-pvc of default/my-claim (create, attempt 1): done.
func (c Call) String() string {
	return fmt.Sprintf("%s of %s (%s, attempt %d): %s", c.Handler, c.object(), c.Reason, c.Attempt, c.Outcome)
}

// handling names the handler and the object.
func (c Call) handling() string { return fmt.Sprintf("%s of %s %s", c.Handler, c.Kind, c.object()) }

func (c Call) object() string {
	return strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
}

// counts reports whether the handler must not succeed again. What a new process begins with may be repeated.
func (c Call) counts() bool {
	switch c.Reason {
	case einmal.ReasonCreate, einmal.ReasonUpdate, einmal.ReasonDelete:
		return true
	default:
		return false
	}
}

// event reports whether it was made for an event of the watch.
func (c Call) event() bool {
	switch c.Reason {
	case einmal.WatchListed, einmal.WatchAdded, einmal.WatchModified, einmal.WatchDeleted:
		return true
	default:
		return false
	}
}

// Calls are the attempts of handlers that have ended so far, in order.
func (w *World) Calls() []Call {
	w.Helper()
	return callsOf(w.begun().Calls())
}

// callsOf returns attempts as scenarios see them.
func callsOf(attempts []declaration.Attempt) []Call {
	calls := make([]Call, len(attempts))
	for i, made := range attempts {
		calls[i] = Call{
			Handler: made.Handler, Kind: made.Kind.Kind, Namespace: made.Object.Namespace, Name: made.Object.Name,
			Reason: einmal.Reason(made.Reason), Attempt: made.Number, Outcome: string(made.Outcome),
		}
	}
	return calls
}

// Writes are the writes of the operator that the API server has accepted so far, in order, each as
//
//	VERB RESOURCE NAMESPACE/NAME SUBRESOURCE by HANDLER
//
// with the verbs of RBAC, and apply; without a handler where the operator keeps its own books. Dry runs write nothing, so they are not among them. Nor are the operator's writes of its own
// ConfigMap, Lease and Events, which it makes in the background.
func (w *World) Writes() []string {
	w.Helper()
	requests := w.begun().WritesToObjects()
	writes := make([]string, len(requests))
	for i, made := range requests {
		writes[i] = made.String()
	}
	return writes
}
