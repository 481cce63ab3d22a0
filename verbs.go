package einmal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/register"
)

// Reconcile declares a level-triggered handler: it compares the desired state with the actual one and corrects the
// difference, whatever has changed. It runs when this process first sees the object. It runs again when what it
// compares (the essence of the object, or its Fields) differs from what it last succeeded with, and when a related
// object triggers it: see Owns and Watches.
//
// It runs after the create, update and resume handlers, whether or not these have succeeded. It runs in every new
// process, also for objects whose record was lost. It does not run for objects that are being deleted: see OnDelete.
//
// Failures are retried as for other handlers. Nothing is recorded, so it costs no write, and attempts are counted from
// 1 in each process. Objects of a kind that has only Reconcile, Timer, Daemon and OnEvent handlers have no record. Old
// and Diff are empty.
func (k *Kind[T]) Reconcile(id string, fn HandlerFunc[T], options ...ReconcileOption) {
	declareWith(k, cause.Reconcile, id, fn, options)
}

// OnEvent declares a handler that is called for each event of the watch, for example to count, log or forward events.
// The Reason is WatchListed, WatchAdded, WatchModified or WatchDeleted, and Object is the object of the event. Nothing
// is recorded, and it adds no finalizer. A failed call is logged and not retried.
//
// The events of one object come in order, before its other handlers see them, and never while those run. Several
// changes in a row can be combined into one event with the newest state. As long as the process runs, every addition
// and deletion is reported. A deletion that the watch missed is reported late, with the last known state. Events from
// before the process started are not reported; objects that exist then are reported as WatchListed. The operator's own
// writes cause events too.
//
// Object is read-only, because the event may be old: a handler that changes its copy fails. Use Client to write other
// objects.
func (k *Kind[T]) OnEvent(id string, fn HandlerFunc[T], options ...EventOption) {
	declareWith(k, declaration.Event, id, fn, options)
}

// WithoutFinalizer makes OnDelete or Daemon add no finalizer. The delete handler then runs only if another finalizer
// keeps the object long enough. It does not run for an object that disappears at once. A deletion does not wait for the
// daemon.
func WithoutFinalizer() FinalizerOption {
	return option{name: "WithoutFinalizer", handler: func(settings *handlerSettings) error {
		settings.noFinalizer = true
		return nil
	}}
}

// AlsoAtDeletion makes OnResume also run for objects that are being deleted, together with their delete handlers. The
// deletion does not wait for it.
func AlsoAtDeletion() ResumeOption {
	return option{name: "AlsoAtDeletion", handler: func(settings *handlerSettings) error {
		settings.alsoDeleting = true
		return nil
	}}
}

// misplacedAt returns the misplaced options that the compiler cannot refuse, because HandlerOption covers several
// verbs.
func (s *handlerSettings) misplacedAt(verb cause.Cause) []error {
	var found []error
	if s.attemptTimeout > 0 && verb == cause.Daemon {
		found = append(found, errors.New("option AttemptTimeout: not allowed for a daemon, which runs as long as its object exists: leave it out, or use Timer"))
	}
	return found
}

// add adds a handler to the kind.
func (d *declaredKind) add(one declaration.Handler) {
	if one.Verb == declaration.Event {
		d.kind.Observers = append(d.kind.Observers, one)
		return
	}
	d.kind.Handlers = append(d.kind.Handlers, one)
}

// handlers returns all handlers of the kind, with those of OnEvent.
func (d *declaredKind) handlers() []declaration.Handler {
	return slices.Concat(d.kind.Handlers, d.kind.Observers)
}

// FieldFunc is the function of an OnField handler. It gets the value that the field had when the handler last
// succeeded, and the current value. A missing field is the zero V; use a pointer type to distinguish the two. All else
// is as for HandlerFunc.
type FieldFunc[V, T any] func(ctx context.Context, c *Change[T], before, after V) error

// OnField declares a handler for changes of one field. It is OnUpdate with Fields(path), and its function gets the
// values as type V. It does not run at creation, unless it has the option AlsoAtCreation. The value before the change
// is also the zero V if it is not recorded, for very large objects: see Change.Old.
//
// To run for some changes only, add FieldChanges with the same path. Run returns an error if V does not fit the type of
// the field. In an object of an open type (a map, or unstructured.Unstructured), a value that does not fit V makes the
// handler fail permanently, with an error that names the field. Values of Secrets are not recorded: use OnUpdate for
// Secrets.
func OnField[V, T any](kind *Kind[T], id, path string, fn FieldFunc[V, T], options ...UpdateOption) {
	var handle HandlerFunc[T]
	if fn != nil {
		handle = func(ctx context.Context, c *Change[T]) error {
			parsed, err := object.ParsePath(path) // It is checked at the declaration.
			if err != nil {
				return err
			}
			before, err := valueOf[V](c.was, parsed, "before the change")
			if err != nil {
				return err
			}
			after, err := valueOf[V](c.is, parsed, "now")
			if err != nil {
				return err
			}
			return fn(ctx, c, before, after)
		}
	}
	declareWith(kind, cause.Update, id, handle, append([]UpdateOption{FieldChanges(path)}, options...))
	fields := kind.declared.kind.Handlers[len(kind.declared.kind.Handlers)-1].Fields
	for _, other := range fields[min(1, len(fields)):] {
		if !slices.Equal(other, fields[0]) {
			kind.mistakeOf(id, fmt.Errorf("option Fields: OnField compares %s only, not %s: use OnUpdate for several fields", fields[0], other))
		}
	}
	kind.checkFieldType(id, fields, reflect.TypeFor[V]())
	if kind.declared.kind.Secret() {
		kind.mistakeOf(id, errors.New("OnField: no values of Secrets are kept, so there is no value before the change: use OnUpdate with Fields"))
	}
}

// AlsoAtCreation makes an update handler also run at the creation of an object, with the Reason ReasonCreate, if the
// object has a value for something that the handler compares. The value before is then the zero value, and Old is
// empty. The handler then also counts as a create handler: once it has succeeded it does not run for the creation
// again, and the creation is not finished until then.
func AlsoAtCreation() UpdateOption {
	return option{name: "AlsoAtCreation", handler: func(settings *handlerSettings) error {
		settings.atCreation = true
		return nil
	}}
}

// valueOf reads a field of a body as V.
func valueOf[V any](body object.Body, path object.Path, when string) (V, error) {
	var into V
	value, found := object.Get(body, path...)
	if !found || value == nil {
		return into, nil
	}
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &into)
	}
	if err != nil {
		return into, Permanent(fmt.Errorf("field %s: cannot read its value %s as %T, the type of the handler's values: %w", path, when, into, err))
	}
	return into, nil
}

// checkFieldType reports a type of values that the field's Go type cannot be read as.
func (k *Kind[T]) checkFieldType(id string, fields []object.Path, values reflect.Type) {
	if len(fields) == 0 {
		return // The path is wrong, which is reported already.
	}
	declared, ok := register.TypeAt(k.declared.goType, fields[0])
	if !ok || register.Fits(declared, values) {
		return
	}
	k.mistakeOf(id, fmt.Errorf("OnField: %s is a %s, and the handler takes a %s", fields[0], declared, values))
}

// Timer declares a handler that runs again and again for each object. The interval is the time between the end of one
// run and the start of the next, at least a millisecond. The first run is when this process first sees the object, or
// when the object starts to match the filters, after the other handlers that are due, whether or not they succeed. The
// timer stops when the object is deleted. The deletion does not wait for it, because it has no finalizer.
//
// Runs for one object never overlap, neither with each other nor with other handlers, except daemons. So a long run
// delays the others. A run costs no goroutine, and no write unless the handler changes the object. Nothing is recorded:
// a new process starts over, including InitialDelay. Old and Diff are empty.
//
// Errors are retried as for other handlers; attempts count from 1 for each run. A final failure (Permanent,
// MaxAttempts, RetryFor or OnError(PolicyFail)) stops the timer for the object until what it compares changes, the
// object starts to match the filters again, or the operator restarts. RequeueAfter(d) sets the next run to d from now.
func (k *Kind[T]) Timer(id string, interval time.Duration, fn HandlerFunc[T], options ...TimerOption) {
	if interval < shortestInterval {
		k.mistakeOf(id, fmt.Errorf("interval: must be at least %s, got %s", shortestInterval, interval))
		interval = shortestInterval
	}
	every := option{name: "interval", handler: func(settings *handlerSettings) error {
		settings.timing.interval = interval
		return nil
	}}
	declareWith(k, cause.Timer, id, fn, append([]TimerOption{every}, options...))
}

// shortestInterval is the shortest interval of a timer.
const shortestInterval = time.Millisecond

// timing holds the options of a timer.
type timing struct {
	interval, idle time.Duration
	sharp          bool
	delay          func(filterContext) (func(object.Body) time.Duration, error)
}

// timerOption returns an option of a timer with a duration.
func timerOption(name string, d time.Duration, set func(*timing)) TimerOption {
	return option{name: name, handler: func(settings *handlerSettings) error {
		set(&settings.timing)
		if d < 0 {
			return fmt.Errorf("option %s: must not be negative, got %s", name, d)
		}
		return nil
	}}
}

// FixedRate makes a timer start its runs at fixed times: at multiples of the interval after its first run, however long
// runs take. Times that pass during a run are skipped. By default, the interval lies between the end of one run and the
// start of the next.
func FixedRate() TimerOption {
	return timerOption("FixedRate", 0, func(t *timing) { t.sharp = true })
}

// IdleFor delays a run until what the timer compares (the essence of the object, or its Fields) has not changed for d.
// Changes of the status do not count, and neither do the timer's own changes. When the operator starts, the time starts
// again. With FixedRate, the run is at the next fixed time after that. By default, a timer does not wait.
func IdleFor(d time.Duration) TimerOption {
	return timerOption("IdleFor", d, func(t *timing) { t.idle = d })
}

// InitialDelay sets how long after the process first sees the object, or the object starts to match, the first run is.
// The default is 0.
func InitialDelay(d time.Duration) TimerOption {
	return timerOption("InitialDelay", d, func(t *timing) {
		t.delay = func(filterContext) (func(object.Body) time.Duration, error) {
			return func(object.Body) time.Duration { return d }, nil
		}
	})
}

// InitialDelayOf is InitialDelay with a function that returns the delay for an object. The object has its namespace,
// name, uid and essence. T must be the type that the kind was declared with. The function is called once for each
// object; a negative delay counts as 0. If it panics, the object is not handled. This is logged and retried, as for
// When.
func InitialDelayOf[T any](delay func(*T) time.Duration) TimerOption {
	return timerOption("InitialDelayOf", 0, func(t *timing) {
		t.delay = func(in filterContext) (func(object.Body) time.Duration, error) {
			if wanted := reflect.TypeFor[T](); wanted != in.goType || delay == nil {
				return nil, fmt.Errorf("option InitialDelayOf: must have a function that takes a *%s, the type of the handler's kind", in.goType)
			}
			return func(body object.Body) time.Duration {
				read, err := in.read(body)
				if err != nil {
					panic(err) // The caller recovers it.
				}
				return delay(typed[T](read))
			}, nil
		}
	})
}

// of returns the timing for the engine.
func (t timing) of(in filterContext) (handler.Timing, error) {
	declared := handler.Timing{Interval: t.interval, Sharp: t.sharp, Idle: t.idle}
	if t.delay == nil {
		return declared, nil
	}
	var err error
	declared.Delay, err = t.delay(in)
	return declared, err
}

// Daemon declares a handler that runs in a goroutine of its own as long as its object exists, beside all other
// handlers. It has no timeout. It starts when this process first sees the object, or when the object starts to match
// its filters. Other handlers that are due run first, whether or not they succeed. A process runs one call at a time
// for an object and a daemon.
//
// The context is cancelled when the object is being deleted or gone, when it does not match the filters any more, when
// its kind is not served any more, and when the operator stops. context.Cause returns the reason: ErrObjectDeleted for
// the first two. The daemon must then return; what it returns is ignored. A finalizer keeps the object until the daemon
// has returned or was abandoned: see AbandonAfter and WithoutFinalizer.
//
// Changes of Object are written when the daemon returns, as for other handlers. To write and read in between, see
// Change.Sync.
//
// Delete handlers do not wait for daemons. Remove external resources in two places: in the daemon before it returns,
// and in a delete handler, which also runs after the process was killed.
//
// A daemon that returns nil, or fails permanently, has ended for this object. It starts again when the object matches
// its filters again, or when the operator restarts. After RequeueAfter, RetryAfter and other errors, it is called again
// after the delay, with the newest object. If a call ran longer than the longest backoff, attempts count from 1 again.
// Nothing is recorded. Old and Diff are empty.
func (k *Kind[T]) Daemon(id string, fn HandlerFunc[T], options ...DaemonOption) {
	declareWith(k, cause.Daemon, id, fn, options)
}

// StopGrace sets the time between the signal of Change.Stopping and the end of the daemon's context, so that the daemon
// can finish its work. When the operator stops, it is at most the ShutdownTimeout. By default, the context is cancelled
// at once.
func StopGrace(d time.Duration) DaemonOption {
	return option{name: "StopGrace", handler: func(settings *handlerSettings) error {
		if settings.stopGrace = max(d, 1); d < 0 {
			return fmt.Errorf("option StopGrace: must not be negative, got %s", d)
		}
		return nil
	}}
}

// AbandonAfter sets how long Einmal waits for a daemon after its context was cancelled. After that, the daemon is
// abandoned: the object can be deleted, the log and an event warn about it, and its later changes of Object are not
// written. The goroutine may still be running, because Go cannot stop it. Until it returns, the daemon is not started
// again for this object. By default, Einmal waits forever.
func AbandonAfter(d time.Duration) DaemonOption {
	return option{name: "AbandonAfter", handler: func(settings *handlerSettings) error {
		if settings.abandon = max(d, 1); d <= 0 {
			return fmt.Errorf("option AbandonAfter: must be positive, got %s; leave it out to wait without limit", d)
		}
		return nil
	}}
}

// Sync writes what a daemon has changed on Object since it started or since the last Sync, and waits until that is
// done. Only changed fields are written. Afterwards Object is a new copy, of the newest state that this process knows.
// If nothing was changed, Sync only reads from the cache.
//
// It waits until running handlers of the object return. It fails when ctx ends, when the operator stops, when the
// daemon may not change a field, or when the API server rejects the write. Changes that were not written stay on
// Object. Do not call it concurrently. In handlers that are not daemons, it returns an error.
func (c *Change[T]) Sync(ctx context.Context) error {
	if !c.driven { // A test calls the handler.
		return nil
	}
	if c.sync == nil {
		return errors.New("sync: only daemons can call it; changes of other handlers are written when they return")
	}
	return c.sync(ctx)
}

// Stopping returns a channel that is closed when a daemon should stop: StopGrace before its context is cancelled. For
// handlers that are not daemons it is nil, which blocks forever.
func (c *Change[T]) Stopping() <-chan struct{} { return c.stopping }

// keepUp gives a daemon its Sync and Stopping.
func (k *Kind[T]) keepUp(change *Change[T], call *attempt.Call) {
	change.stopping = call.Stopping
	if call.Sync == nil {
		return
	}
	change.sync = func(ctx context.Context) error {
		left, err := change.left()
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		newest, err := call.Sync(ctx, detached(left).(object.Body))
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		copied, err := k.fromBody(newest)
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		if call.Given, err = k.canonical(newest); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		change.Object = typed[T](copied)
		return nil
	}
}
