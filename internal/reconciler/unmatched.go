package reconciler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// skipUnmatched reports whether no handler matches the object. Such an object gets no log lines and no writes, and is forgotten.
func (p *pass) skipUnmatched() bool {
	if p.plan.Cause != cause.Unmatched || p.plan.Finalizer != handler.Keep {
		return false
	}
	p.r.State.Objects.Forget(p.key)
	p.r.State.Objects.DropTriggers(p.key)
	return true
}

// inheritedUnseen reports whether another process may have handled an object that this process does not remember. A process remembers no
// object that no handler matches, so the object may have existed when this process started.
func (p *pass) inheritedUnseen(body object.Body) bool {
	if p.view.Pure.EveryObject() {
		return false
	}
	at, err := time.Parse(time.RFC3339, object.Text(body, "metadata", "creationTimestamp"))
	return err == nil && p.r.FirstList.Predates(at)
}
