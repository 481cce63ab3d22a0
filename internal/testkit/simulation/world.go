// Package simulation runs whole operators in virtual time against the API server in memory, and lets go wrong what a
// schedule says: crashes, lost answers, stale caches, other writers.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// user is who World.User writes as.
const user = "user"

// Operator is what a world runs: an operator of package einmal.
type Operator interface {
	NewManager(config *rest.Config, options manager.Options) (manager.Manager, error)
	SetupWithManager(mgr manager.Manager) error
}

// Setup says what a world is made of.
type Setup struct {
	// Schedule is what goes wrong.
	Schedule Schedule
	// Definitions keeps compiled definitions for the next world.
	Definitions *Definitions
	// Log is where operators log.
	Log *slog.Logger
	// Failed is called when an operator cannot run.
	Failed func(error)
	// DigestKey is the key of the digests of what Secrets hold.
	DigestKey []byte
	// Times are the fields whose times are compared.
	Times []TimeField
	// Unchecked are fields that the API server may store without a check, such as "StatefulSet.spec.template.spec.affinity".
	Unchecked []string
	// Edits are the merge patches that users make, by object: see World.Edits. A user who edits in the middle of a handler makes the next one.
	Edits map[string][]string
	// FillNamespaces creates in each namespace what a real cluster creates there.
	FillNamespaces bool
}

// World is an API server in memory with an operator that is started again after each crash. It lives in one
// bubble of testing/synctest.
type World struct {
	Server *apiserver.Server
	// User reads and writes with all rights, without a cache.
	User client.WithWatch

	setup    Setup
	mapper   meta.RESTMapper
	declared declaration.Operator
	history  history

	stop    context.CancelFunc // of the operator that runs; nil while none does
	stopped sync.WaitGroup
	// beginning holds the objects that the world began with.
	beginning map[types.UID]original

	// effects lets one effect happen at a time. A channel, since virtual time stands still where a mutex is waited for.
	effects chan struct{}

	mu            sync.Mutex
	processes     []*Process
	killed        bool // until the next Start
	counts        map[string]int
	points        []Point
	idle          []Point
	edits         map[string][]string
	edited        map[types.UID]bool // children whose data was edited, and whether that has counted in their generation
	takenAway     map[string]bool    // children that were deleted or replaced, by the names that Objects has
	withoutTarget []string
	events        map[string]int
	cutUntil      time.Time
	busyUntil     time.Time
	clock         time.Duration
	rollout       *rollout
	updated       bool // the operator runs, or is about to run, in its current version

	// anotherHome is the API server with the state of the other operator; nil if there is none.
	anotherHome *apiserver.Server
}

// Definitions keeps definitions in their compiled form, so that they are compiled once for many worlds.
type Definitions struct {
	mu     sync.Mutex
	parsed map[string]*apiserver.Definitions
}

func (d *Definitions) of(manifests [][]byte) (*apiserver.Definitions, error) {
	key := fmt.Sprintf("%q", manifests)
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, found := d.parsed[key]; found {
		return known, nil
	}
	parsed, err := apiserver.ParseDefinitions(manifests...)
	if err != nil {
		return nil, err
	}
	if d.parsed == nil {
		d.parsed = map[string]*apiserver.Definitions{}
	}
	d.parsed[key] = parsed
	return parsed, nil
}

// collectAt is by how many percent memory may grow before the garbage of a test process is collected: worlds are small and
// short, so that a process which is made for them has memory to spare, and a fifth of its time went into collecting.
const collectAt = 400

// PrepareProcess makes the process fit for many worlds, before the first one: it collects garbage less often, unless GOGC says
// how often, and it does not wait in virtual time where libraries do: their handler of unforeseen errors compares the virtual
// time with that of earlier bubbles, and would sleep for decades.
//
//nolint:gochecknoglobals // What it prepares is global.
var PrepareProcess = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // There is no other way to set it.
})

// New makes a world with the kinds of an operator. It must be called in a bubble, and ended there with End.
func New(setup Setup, operator Operator) (*World, error) {
	PrepareProcess()
	declared := hook.Of().Observe(operator, nil, setup.Log)
	definitions, err := setup.Definitions.of(declared.CRDs)
	if err != nil {
		return nil, err
	}
	w := &World{setup: setup, declared: declared, effects: make(chan struct{}, 1), counts: map[string]int{}, events: map[string]int{}}
	options := []apiserver.Option{
		apiserver.WithDefinitions(definitions), apiserver.WithClock(w.now), apiserver.WithUnchecked(setup.Unchecked...),
	}
	if setup.FillNamespaces {
		options = append(options, apiserver.WithNamespaceContent())
	}
	w.Server, err = apiserver.New(options...)
	if err != nil {
		return nil, err
	}
	asUser := w.Server.Config()
	asUser.UserAgent = user
	w.User, err = client.NewWithWatch(asUser, client.Options{Scheme: declared.Scheme})
	if err != nil {
		w.End()
		return nil, err
	}
	w.noteBeginning()
	if w.mapper, err = newMapper(discovery.NewDiscoveryClientForConfigOrDie(w.Server.Config())); err != nil {
		w.End()
		return nil, err
	}
	return w, nil
}

// now is the time of the API server's clock.
func (w *World) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.clock)
}

// Versions are the operators that a world can run. Each makes the operator of one process.
type Versions struct {
	Current func(*Process) Operator
	// Previous runs before an update; nil updates the current version to itself.
	Previous func(*Process) Operator
	// Other is another operator for the same kinds; nil if there is none.
	Other func(*Process) Operator
}

// Start starts an operator, in as many replicas as the schedule says.
func (w *World) Start(versions Versions) {
	ctx, cancel := context.WithCancel(context.Background()) // It ends in order, before the test's own.
	w.stop = cancel
	ofFirst, stopFirst := context.WithCancel(ctx) //nolint:gosec // The rollout calls it, or the context above ends.
	started := &rollout{world: w, ctx: ctx, current: versions.Current, stopFirst: stopFirst}
	w.mu.Lock()
	w.killed, w.rollout = false, started
	updated := w.updated
	w.mu.Unlock()
	first := versions.Current
	if w.setup.Schedule.Count(Kind.Replaces) > 0 && versions.Previous != nil && !updated {
		first = versions.Previous
	}
	started.begin(ofFirst, first)
	for range w.setup.Schedule.Count(func(kind Kind) bool { return kind == TwoReplicas || kind == Standby }) {
		started.begin(ctx, versions.Current)
	}
	if versions.Other != nil && w.setup.Schedule.Has(TwoOperators) {
		if err := w.startAnotherHome(); err != nil {
			w.setup.Failed(err)
			return
		}
		w.stopped.Go(func() { w.keepRunning(ctx, versions.Other, true) })
	}
}

// Running reports whether an operator was started and not stopped.
func (w *World) Running() bool { return w.stop != nil }

// Stop stops the operator in order and waits for it.
func (w *World) Stop() {
	if w.stop != nil {
		w.stop()
		w.stopped.Wait()
		w.stop = nil
	}
}

// Kill ends every process without order: what it has not sent yet does not arrive. None starts before the next Start.
func (w *World) Kill() {
	w.mu.Lock()
	w.killed = true
	processes := w.processes
	w.mu.Unlock()
	for _, p := range processes {
		p.die(Fault{Kind: CrashBefore})
	}
	w.Stop()
}

// End stops the operator and the API server, after what is still to happen.
func (w *World) End() {
	w.Stop()
	w.Server.Close()
	if w.anotherHome != nil {
		w.anotherHome.Close()
	}
}

// Mapper knows the kinds that are served.
func (w *World) Mapper() meta.RESTMapper { return w.mapper }

// Pass lets virtual time go by.
func (w *World) Pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	synctest.Wait()
}

// Processes is how many processes there were.
func (w *World) Processes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.processes)
}

// keepRunning starts the operator, and again after each crash.
func (w *World) keepRunning(ctx context.Context, make func(*Process) Operator, apart bool) {
	for ctx.Err() == nil {
		p := newProcess(w, apart)
		if !w.begin(p) {
			return
		}
		err := p.run(ctx, make(p))
		if lost := errors.Is(err, errEnded) && w.setup.Schedule.elects(); err != nil && !lost {
			w.setup.Failed(fmt.Errorf("the operator ended: %w", err))
			return
		}
		p.die(Fault{Kind: CrashBefore}) // One that lost its lease ends, whatever its handlers are at.
		switch p.end.Kind {             //nolint:exhaustive // The others begin again at once.
		case CrashThenDown:
			down := time.NewTimer(downFor)
			select {
			case <-down.C:
			case <-ctx.Done():
			}
			down.Stop()
		case CrashThenWiped:
			w.wipe() //nolint:contextcheck // The user who wipes is not the operator.
		case CrashThenReset:
			w.resetVersions()
		case CrashThenOlder:
			w.goBack(p.end) //nolint:contextcheck // As above.
		case CrashThenForged:
			w.forgeRecords(p.end) //nolint:contextcheck // As above.
		}
	}
}

// begin notes that a process begins. It reports whether one may.
func (w *World) begin(p *Process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.killed {
		if w.setup.Schedule.Has(SkewedClocks) && len(w.processes)%2 == 1 {
			p.skew = clockSkew
		}
		w.processes = append(w.processes, p)
	}
	return !w.killed
}

// reach counts that a process has come to a point, and returns what goes wrong there.
func (w *World) reach(what string) []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
	at := Point{What: what, N: w.counts[what]}
	w.points = append(w.points, at)
	return w.faultsAt(at)
}

// told counts that a watch of a resource has an event to tell, and returns what goes wrong with it.
func (w *World) told(resource string) []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[resource]++
	return w.faultsAt(Point{What: resource, N: w.events[resource]})
}

func (w *World) faultsAt(at Point) []Fault {
	var found []Fault
	for _, fault := range w.setup.Schedule {
		switch {
		case fault.Kind == RefusedThrice && fault.At.What == at.What && at.N >= fault.At.N && at.N < fault.At.N+3:
			found = append(found, Fault{Kind: Refused, At: at})
		case fault.At == at:
			found = append(found, fault)
		}
	}
	return found
}

// Points are the points that processes came to, in order.
func (w *World) Points() []Point {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Point(nil), w.points...)
}

// Events returns how many events watches delivered of each resource.
func (w *World) Events() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.events)
}
