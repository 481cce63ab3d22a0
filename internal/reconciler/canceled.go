package reconciler

import (
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// canceled reports whether an attempt that was planned is not made any more: what was saved meanwhile has shown that the object
// is being deleted, or that it no longer matches the handler's filters. What is next is decided by the next pass.
func (p *pass) canceled(w *work, run handler.Run) bool {
	if !p.seen.IsLive() || p.seen.Version() == p.planned || run.Reason == cause.Delete {
		return false
	}
	body, err := p.r.Kind.Canonical(p.seen.Raw())
	if err != nil {
		return false // The next pass reports it.
	}
	deleting := object.Text(body, "metadata", "deletionTimestamp") != "" && !run.AlsoDeleting
	matches, err := run.Concerns(handler.State{
		Namespace: p.key.Namespace, Name: p.key.Name, UID: p.memory.uid, Essence: p.r.essence(body),
	})
	if !deleting && (matches || err != nil) {
		return false
	}
	p.report.Log.Info("handler not invoked, the object has changed", "handler", run.ID, "reason", run.Reason, "deleting", deleting)
	w.canceled = true
	return true // mutant: runs-after-deletion
}
