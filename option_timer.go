package einmal

import (
	"fmt"
	"reflect"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// Timer declares a handler that runs again and again for each object, at the times that its options say; Interval is
// required. It first runs when this process first sees the object, or when the object begins to match its filters, and
// ends with the deletion, which does not wait for it: there is no finalizer. It runs in a pass after the other handlers
// that are due, whether or not those have succeeded.
//
// A run never overlaps with another one of the same object, of this timer or of other handlers but daemons: one that
// takes long puts the others off. A tick costs no goroutine and no write, unless the handler changes the object. Nothing
// of it is recorded: a new process begins anew, also with the initial delay. There is neither Old nor Diff.
//
// An error is retried as for other handlers, out of the timer's turn; attempts count from 1 in each run. A failure that
// is final, because of Permanent, MaxAttempts, Timeout or OnError(Fail), ends the timer for the object: until what it
// looks at changes, the object comes to match its filters again, or the operator starts again. RetryAfter(d, nil) puts the
// next run at d from now.
func (k *Kind[T]) Timer(id string, fn HandlerFunc[T], options ...Option) {
	k.declare(cause.Timer, id, fn, options)
}

// timing is what the options of a timer set.
type timing struct {
	set                    bool
	interval, idle, jitter time.Duration
	sharp                  bool
	delay                  func(filterContext) (func(object.Body) time.Duration, error)
}

// timerOption is an option of a timer with a duration.
func timerOption(name string, d, least time.Duration, set func(*timing)) Option {
	return Option{name: name, handler: func(settings *handlerSettings) error {
		settings.timing.set = true
		set(&settings.timing)
		if d < least {
			return fmt.Errorf("option %s: %s is too short: give at least %s", name, d, least)
		}
		return nil
	}}
}

// Interval is an option of Timer: how long after the end of one run the next one begins; with Sharp, how far the moments lie
// apart at which runs begin. At least a millisecond.
func Interval(d time.Duration) Option {
	return timerOption("Interval", d, time.Millisecond, func(t *timing) { t.interval = max(d, time.Millisecond) })
}

// Sharp is an option of Timer: runs begin on a grid of intervals that begins with the first run, however long they take
// and however busy the operator is. Moments that pass while a run goes on are left out. The default is an interval between
// the end of one run and the beginning of the next.
func Sharp() Option {
	return timerOption("Sharp", 0, 0, func(t *timing) { t.sharp = true })
}

// Idle is an option of Timer: it does not run before what it looks at (the essence of the object, or the fields given with
// Field) has been as it is for d. Changes of the status do not count, nor does what the timer changes itself. When the
// operator starts it begins to count anew. With Sharp the run is at the next moment of the grid after that. The
// default is not to wait.
func Idle(d time.Duration) Option {
	return timerOption("Idle", d, 0, func(t *timing) { t.idle = d })
}

// Jitter is an option of Timer: each run is put off by up to d, the first one too, so that objects which began together do not
// come together. By how much is given by object and run alone. It is no longer than the interval. The default is none.
func Jitter(d time.Duration) Option {
	return timerOption("Jitter", d, 0, func(t *timing) { t.jitter = d })
}

// InitialDelay is an option of Timer: how long after the object is first seen by this process, or begins to match, the first
// run comes. The default is at once.
func InitialDelay(d time.Duration) Option {
	return timerOption("InitialDelay", d, 0, func(t *timing) {
		t.delay = func(filterContext) (func(object.Body) time.Duration, error) {
			return func(object.Body) time.Duration { return d }, nil
		}
	})
}

// InitialDelayOf is InitialDelay with a function that says how long, of the object as it is then: with its namespace, name, uid
// and essence. T is the type that the kind was declared with. It is asked once for each object; less than zero counts as
// zero. A panic leaves the object alone, and is told and tried again, as one of When.
func InitialDelayOf[T any](delay func(*T) time.Duration) Option {
	return timerOption("InitialDelayOf", 0, 0, func(t *timing) {
		t.delay = func(in filterContext) (func(object.Body) time.Duration, error) {
			if wanted := reflect.TypeFor[T](); wanted != in.goType || delay == nil {
				return nil, fmt.Errorf("option InitialDelayOf: it takes a function of *%s, for which the handler's kind was declared", in.goType)
			}
			return func(body object.Body) time.Duration {
				read, err := in.read(body)
				if err != nil {
					panic(err) // Caught where the function is called.
				}
				return delay(typed[T](read))
			}, nil
		}
	})
}

// of is the timing as it is declared.
func (t timing) of(in filterContext) (handler.Timing, error) {
	declared := handler.Timing{Interval: t.interval, Sharp: t.sharp, Idle: t.idle, Jitter: t.jitter}
	if t.interval > 0 && t.jitter > t.interval {
		return declared, fmt.Errorf("option Jitter: %s is longer than the interval of %s: runs would overtake each other", t.jitter, t.interval)
	}
	if t.delay == nil {
		return declared, nil
	}
	var err error
	declared.Delay, err = t.delay(in)
	return declared, err
}
