package einmal

import (
	"context"
	"errors"
	"fmt"

	"github.com/einmal-operators/einmal/internal/engine"
)

// ActivityFunc is a handler of the operator itself, not of an object. A panic is an error.
type ActivityFunc func(ctx context.Context) error

// ProbeFunc looks whether something that the operator needs is well. What it returns is shown as JSON; an error says that it
// is not well.
type ProbeFunc func(ctx context.Context) (any, error)

// activities are the handlers of the operator itself, as they were declared.
type activities struct {
	startup, cleanup []engine.Activity
	probes           []probe
}

// OnStartup declares a handler that runs once, when the process begins to work and before anything is asked of the API
// server about objects: in order of declaration, one after the other. Of several replicas, the one that is elected runs it.
// RetryAfter asks for another attempt; any other error ends Run with it, and the process with exit code 1. Each attempt
// has the time of the option Deadline. The context ends when the operator is told to stop.
func (op *Operator) OnStartup(id string, fn ActivityFunc) {
	op.activities.startup = append(op.activities.startup, engine.Activity{ID: id, Do: fn})
}

// OnCleanup declares a handler that runs when the operator has been told to stop, after every other handler has returned:
// in order of declaration, one after the other. All share what is left of the option Grace, at least two seconds. What
// fails is logged, and the exit code stays as it is. It does not run where a startup handler has failed, nor after a crash.
func (op *Operator) OnCleanup(id string, fn ActivityFunc) {
	op.activities.cleanup = append(op.activities.cleanup, engine.Activity{ID: id, Do: fn})
}

// OnProbe declares a probe: /healthz calls it for each request, once the startup handlers are done, and answers with a JSON
// object of what the probes returned, by id. If one fails the answer is 500, with what is wrong as {"error": "..."} in its
// place. All probes run at the same time, and have ten seconds. In a manager of your own they are one of its health checks,
// named after the operator's identity, which fails when a probe does.
func (op *Operator) OnProbe(id string, fn ProbeFunc) {
	op.activities.probes = append(op.activities.probes, probe{id: id, look: fn})
}

// check finds mistakes in the declarations.
func (a activities) check() error {
	return errors.Join(checkActivities("startup", a.startup), checkActivities("cleanup", a.cleanup), checkActivities("probe", a.asActivities()))
}

func checkActivities(family string, declared []engine.Activity) error {
	var found []error
	ids := map[string]bool{}
	for _, one := range declared {
		where := fmt.Sprintf("%s handler %q", family, one.ID)
		if err := checkID(one.ID); err != nil {
			found = append(found, fmt.Errorf("%s: %w", where, err))
		}
		if ids[one.ID] {
			found = append(found, fmt.Errorf("%s is declared twice: give each its own id", where))
		}
		ids[one.ID] = true
		if one.Do == nil {
			found = append(found, fmt.Errorf("%s has no function", where))
		}
	}
	return errors.Join(found...)
}

// asActivities are the probes in the form in which they are checked.
func (a activities) asActivities() []engine.Activity {
	declared := make([]engine.Activity, len(a.probes))
	for i, one := range a.probes {
		declared[i].ID = one.id
		if one.look != nil {
			declared[i].Do = func(context.Context) error { return nil }
		}
	}
	return declared
}
