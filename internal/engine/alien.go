package engine

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// passesBy reports whether no handler is for the object. Such an object gets no log lines, no writes and no memory.
func (p *pass) passesBy() bool {
	if p.plan.Cause != cause.Alien || p.plan.Finalizer != handler.Keep {
		return false
	}
	p.memories.forget(p.key)
	p.wakes.forget(p.key)
	return true
}

// inheritedUnseen reports whether an object that this process remembers nothing of may have been there when it began: those
// that no handler was for are not remembered. Another process may have handled it.
func (p *pass) inheritedUnseen(body object.Body) bool {
	if p.pure.EveryObject() {
		return false
	}
	at, err := time.Parse(time.RFC3339, object.Text(body, "metadata", "creationTimestamp"))
	return err == nil && p.startup.predates(at)
}
