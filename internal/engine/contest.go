package engine

import (
	"context"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// What people see when somebody else and the operator change a field again and again.
const (
	contestReason   = "WritersFight"
	contestSentence = "%s and %s change %s in turn, again and again: let only one of them set it. Until then the object is handled once in %s"
)

// written are the fields that the work sets, users' and our own.
func (p *pass) written(w *work, text string) []patch.Edit {
	edits := append(append([]patch.Edit{}, w.rest...), w.status...)
	if w.finalizer == handler.Add {
		edits = append(edits, patch.Edit{Path: object.Path{"metadata", "finalizers"}})
	}
	if !w.keepRecord && text != p.stored {
		edits = append(edits, patch.Edit{Path: p.description.Carrier.Path(p.settings.Identity)})
	}
	return edits
}

// contend looks into a write upon that of somebody else. Where the two fight over a field, the object is left alone for a
// while afterwards.
func (p *pass) contend(ctx context.Context, edits []patch.Edit) {
	if p.memory.ours == "" || p.memory.ours == version(p.base) || len(edits) == 0 {
		return
	}
	if p.memory.contest == nil {
		p.memory.contest = &patch.Contest{}
	}
	fields, news := p.memory.contest.Turn(p.base, edits, time.Now())
	if len(fields) == 0 {
		return
	}
	p.memory.quiet = time.Now().Add(p.memory.contest.Pause())
	if news {
		p.tellContest(ctx, fields[0])
	}
}

// wrote notes what our write has left.
func (p *pass) wrote(answer object.Body, edits []patch.Edit) {
	p.memory.ours = version(answer)
	if p.memory.contest != nil {
		p.memory.contest.Wrote(answer, edits)
	}
}

// tellContest names the two writers. Whose the field is now is told by a live read.
func (p *pass) tellContest(ctx context.Context, field object.Path) {
	other := "somebody else"
	if live, err := p.objects.Get(ctx, p.key); err == nil {
		if named := object.Manager(live, field, p.settings.Identity); named != "" {
			other = named
		}
	}
	pause := p.memory.contest.Pause()
	p.log.Warn("two writers change a field in turn, again and again: let only one of them set it; the object is handled slowly until then",
		"field", field.String(), "writers", []string{p.settings.Identity, other}, "onceIn", pause.String())
	p.warn(contestReason, "Handle", contestSentence, p.settings.Identity, other, field.String(), pause.String())
}

// contested is until when an object that is fought over is left alone. A deletion does not wait.
func (p *pass) contested() time.Time {
	if time.Now().Before(p.memory.quiet) && !p.state().Deleting {
		return p.memory.quiet
	}
	return time.Time{}
}
