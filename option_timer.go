package einmal

import (
	"fmt"
	"reflect"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

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
