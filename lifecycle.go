package einmal

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/engine"
	"github.com/einmal-operators/einmal/internal/health"
	"github.com/einmal-operators/einmal/internal/register"
)

// StartupFunc is a handler of the operator's start. The client sends each request to the API server, since no cache is filled yet; what it may do
// is said by Permissions. A panic is an error.
type StartupFunc func(ctx context.Context, c client.Client) error

// CleanupFunc is a handler of the operator's end. A panic is an error.
type CleanupFunc func(ctx context.Context) error

// ProbeFunc checks something that the operator needs. What it returns is shown as JSON; an error says that the check has failed.
type ProbeFunc func(ctx context.Context) (any, error)

// activities are the handlers of the operator itself, as they were declared.
type activities struct {
	startup, cleanup []declaration.Activity
	probes           []health.Probe
}

// OnStartup declares a handler that runs once, when the process begins to work and before it lists objects. Startup handlers run in order of
// declaration, one after the other. Of several replicas, the elected one runs them. RetryAfter and RequeueAfter ask for another attempt;
// any other error ends Run with it, and the process with exit code 1. Each attempt has the AttemptTimeout of HandlerDefaults. The
// context ends when the operator stops.
func (op *Operator) OnStartup(id string, fn StartupFunc) {
	var do func(context.Context) error
	if fn != nil {
		do = func(ctx context.Context) error { return fn(ctx, kube.Live(op.client)) }
	}
	op.activities.startup = append(op.activities.startup, declaration.Activity{ID: id, Do: do})
}

// OnCleanup declares a handler that runs when the operator stops, after every other handler has returned. Cleanup handlers run in order of
// declaration, one after the other. They share what is left of the ShutdownTimeout, at least two seconds. A failure is logged and
// does not change the exit code. They do not run after a failed startup handler, nor after a crash.
func (op *Operator) OnCleanup(id string, fn CleanupFunc) {
	op.activities.cleanup = append(op.activities.cleanup, declaration.Activity{ID: id, Do: fn})
}

// OnProbe declares a probe. /healthz calls it for each request, once the startup handlers are done, and answers with a JSON object of what the
// probes returned, by id. If a probe fails the answer is 500, with {"error": "..."} in its place. Probes run concurrently and have
// ten seconds. With SetupWithManager, they are one of the manager's health checks, named after the operator's identity.
func (op *Operator) OnProbe(id string, fn ProbeFunc) {
	op.activities.probes = append(op.activities.probes, health.Probe{ID: id, Look: fn})
}

// check returns what is wrong with the declarations.
func (a activities) check() error {
	return errors.Join(checkActivities("startup", a.startup), checkActivities("cleanup", a.cleanup), checkActivities("probe", a.asActivities()))
}

func checkActivities(family string, declared []declaration.Activity) error {
	var found []error
	ids := map[string]bool{}
	for _, one := range declared {
		where := fmt.Sprintf("%s handler %q", family, one.ID)
		if err := register.CheckID(one.ID); err != nil {
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
func (a activities) asActivities() []declaration.Activity {
	declared := make([]declaration.Activity, len(a.probes))
	for i, one := range a.probes {
		declared[i].ID = one.ID
		if one.Look != nil {
			declared[i].Do = func(context.Context) error { return nil }
		}
	}
	return declared
}

// health returns what the health port shows of the operator.
func (op *Operator) health(driver *engine.Operator) health.Operator {
	return health.Operator{Identity: op.settings.Identity, Probes: op.activities.probes, Begun: driver.Begun, Ready: driver.Ready}
}

// serveHealth adds the health port to the manager of Run.
func (op *Operator) serveHealth(ctx context.Context, mgr manager.Manager, driver *engine.Operator, address string) error {
	if address = orNowhere(address); address == nowhere {
		return nil
	}
	served, err := op.health(driver).Server(ctx, address)
	if err != nil {
		return err //nolint:wrapcheck // It names the port.
	}
	if err := mgr.Add(served); err != nil {
		return fmt.Errorf("add the health port: %w", err)
	}
	return nil
}
