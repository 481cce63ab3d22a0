package reconciler

import (
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/daemons"
)

// startDaemons starts those daemons that the object is to have and has not.
func (l *loop) startDaemons() {
	if l.s.r.stopping() {
		return
	}
	for _, declared := range l.s.plan.Daemons {
		if l.s.r.daemons.Has(l.s.key, l.s.memory.uid, declared.ID) {
			continue
		}
		started := l.s.r.daemons.Start(daemons.Daemon{
			Key: l.s.key, UID: l.s.memory.uid, Object: l.s.newest(), Memo: l.s.r.State.Objects.Memo(l.s.memory.uid)(),
			Run: handler.Run{
				Declaration: declared, Reason: declared.Verb, Attempt: 1, Started: time.Now(),
				MaybeRepeated: l.s.memory.inherited || l.s.memory.started[declared.ID],
			},
		})
		if started {
			l.s.memory.started[declared.ID] = true
		}
	}
}

// stopDaemons stops those daemons that the object is not to have any more.
func (l *loop) stopDaemons() {
	deleting := l.s.seen.Deleting()
	l.s.r.daemons.Stop(l.s.key, func(uid, id string) error {
		wanted := slices.ContainsFunc(l.s.plan.Daemons, func(declared handler.Declaration) bool { return declared.ID == id })
		switch {
		case uid != l.s.memory.uid:
			return daemons.ErrObjectGone
		case deleting:
			return daemons.ErrObjectDeleted
		case !wanted:
			return daemons.ErrNotMatched
		default:
			return nil
		}
	})
}
