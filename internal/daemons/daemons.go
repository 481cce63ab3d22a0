package daemons

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/objects"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// ErrObjectDeleted is why a daemon is stopped whose object is being deleted.
var ErrObjectDeleted = errors.New("the object is being deleted")

// ErrObjectGone is why a daemon is stopped whose object does not exist any more. It is an ErrObjectDeleted, too.
var ErrObjectGone error = objectGoneError{}

// ErrNotMatched is why a daemon is stopped that is not for its object any more.
var ErrNotMatched = errors.New("the object no longer matches the daemon's filters")

type objectGoneError struct{}

// Error says so.
func (objectGoneError) Error() string { return "the object is gone" }

// Is makes it an ErrObjectDeleted, too.
func (objectGoneError) Is(target error) bool { return target == ErrObjectDeleted }

// Options are what daemons need of their kind.
type Options struct {
	Kind    declaration.Kind
	Views   *schemaview.Current
	Reports *report.Kind
	// Cache and Server read the objects of the kind.
	Cache  client.Reader
	Server kube.Objects
	// Invoked is called when a handler runs for an object.
	Invoked func(types.NamespacedName)
	// Submit hands in changes of an object, and Wake takes it to its next reconciliation.
	Submit func(types.NamespacedName, objects.Edits)
	Wake   func(types.NamespacedName)
	// Stop is closed when nothing is reconciled any more. Then Why tells why.
	Stop <-chan struct{}
	Why  func() error
	// Limit limits the grace of a daemon that is stopped now.
	Limit func(grace time.Duration) time.Duration
	// Abandoned counts the daemons that are abandoned and have not returned.
	Abandoned *atomic.Int64
}

// Daemons are the daemons of all objects of one kind. Make them with New. All methods can be called by several goroutines at the same time.
type Daemons struct {
	options Options

	// mu guards the fields below, and the state of each daemon.
	mu    sync.Mutex
	byKey map[types.NamespacedName][]*daemon
	// closed: nothing is reconciled any more, and no daemon is started.
	closed bool
}

// New returns the daemons of a kind, of which there are none yet.
func New(options Options) *Daemons { return &Daemons{options: options} }

// Daemon is a daemon to be started.
type Daemon struct {
	Key types.NamespacedName
	UID string
	// Run is its first attempt.
	Run handler.Run
	// Object is the object as it is now.
	Object object.Body
	// Memo holds what handlers remember of the object.
	Memo *sync.Map
}

// Has reports whether a daemon of a handler was started for the object and was not stopped since. It may have returned.
func (a *Daemons) Has(key types.NamespacedName, uid, id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.byKey[key], func(other *daemon) bool { return other.uid == uid && other.handler.ID == id })
}

// Start starts a daemon that the object does not have, unless Close was called. It reports whether it did.
func (a *Daemons) Start(wanted Daemon) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	d := &daemon{
		all: a, options: a.options, handler: a.options.Kind.Handler(wanted.Run.ID), key: wanted.Key, uid: wanted.UID, memo: wanted.Memo,
		began: wanted.Object, newest: wanted.Object, run: wanted.Run, stopping: make(chan struct{}), left: make(chan struct{}),
	}
	d.ctx, d.cancel = context.WithCancelCause(context.Background())
	if a.byKey == nil {
		a.byKey = map[types.NamespacedName][]*daemon{}
	}
	a.byKey[d.key] = append(a.byKey[d.key], d)
	a.count(d, metrics.Running, 1)
	go d.live()
	return true
}

// Stop tells those daemons of a name to stop for which the function returns a reason. It gets the uid of the object and the id of the handler. The reason is
// the cause of the daemon's context.
func (a *Daemons) Stop(key types.NamespacedName, why func(uid, id string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range slices.Clone(a.byKey[key]) {
		if reason := why(d.uid, d.handler.ID); reason != nil {
			a.stop(d, reason)
		}
	}
}

// StopAll tells all daemons of a name to stop for a reason.
func (a *Daemons) StopAll(key types.NamespacedName, reason error) {
	a.Stop(key, func(string, string) error { return reason })
}

// Close tells all daemons to stop for a reason. None is started any more.
func (a *Daemons) Close(reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, ofOne := range a.byKey {
		for _, d := range slices.Clone(ofOne) {
			a.stop(d, reason)
		}
	}
}

// Wait waits until all daemons have returned or are abandoned.
func (a *Daemons) Wait() {
	for _, d := range a.list() {
		<-d.left
	}
}

// Hold reports whether a daemon of the object has neither returned nor been abandoned.
func (a *Daemons) Hold(key types.NamespacedName, uid string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.byKey[key], func(d *daemon) bool { return d.uid == uid && (d.state == running || d.state == stopping) })
}

func (a *Daemons) list() []*daemon {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []*daemon
	for _, ofOne := range a.byKey {
		found = append(found, ofOne...)
	}
	return found
}

// stop begins the stages of a daemon's end. One that has ended already makes room. The lock is held.
func (a *Daemons) stop(d *daemon, reason error) {
	switch d.state {
	case ended:
		a.remove(d)
		return
	case stopping, abandoned:
		return
	case running:
	}
	d.state = stopping
	close(d.stopping)
	grace := a.options.Limit(d.handler.StopGrace)
	if grace == 0 {
		d.cancel(reason)
	} else {
		d.stages = append(d.stages, time.AfterFunc(grace, func() { d.cancel(reason) }))
	}
	if d.handler.Abandon > 0 {
		d.stages = append(d.stages, time.AfterFunc(grace+d.handler.Abandon, func() { a.abandon(d) }))
	}
	a.options.Reports.About(d.key, nil).DaemonStopping(d.handler.ID, reason)
}

// end notes that a daemon has returned. If it was asked to stop it makes room, else it stays, so that it is not started again.
func (a *Daemons) end(d *daemon) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, stage := range d.stages {
		stage.Stop()
	}
	before := d.state
	if d.state = ended; before != running {
		a.remove(d)
	}
	if before == abandoned {
		a.options.Abandoned.Add(-1)
		a.count(d, metrics.Abandoned, -1)
		return
	}
	a.count(d, metrics.Running, -1)
	close(d.left)
}

// abandon ends the waiting for a daemon that has not returned.
func (a *Daemons) abandon(d *daemon) {
	if !a.giveUp(d) {
		return
	}
	a.options.Reports.About(d.key, d.began).DaemonAbandoned(d.handler.ID, d.handler.Abandon)
	a.options.Wake(d.key)
}

// giveUp sets that a daemon is abandoned. It returns false if the daemon has returned meanwhile.
func (a *Daemons) giveUp(d *daemon) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.state != stopping {
		return false
	}
	d.state = abandoned
	a.options.Abandoned.Add(1)
	a.count(d, metrics.Running, -1)
	a.count(d, metrics.Abandoned, 1)
	close(d.left)
	return true
}

// count counts a daemon in the metrics.
func (a *Daemons) count(d *daemon, state string, by float64) {
	a.options.Reports.Metrics.Daemon(d.handler.ID, state, by)
}

// remove makes room where a daemon was. The lock is held.
func (a *Daemons) remove(d *daemon) {
	rest := slices.DeleteFunc(slices.Clone(a.byKey[d.key]), func(other *daemon) bool { return other == d })
	if a.byKey[d.key] = rest; len(rest) == 0 {
		delete(a.byKey, d.key)
	}
}

// submit hands in what a daemon has changed. It returns false if the daemon is abandoned: then its changes are not taken.
func (a *Daemons) submit(d *daemon, edits objects.Edits) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.state == abandoned {
		return false
	}
	edits.UID = d.uid
	a.options.Submit(d.key, edits)
	return true
}
