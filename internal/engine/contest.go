package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// What people see when two writers change a field again and again.
const (
	contestReason   = "WritersFight"
	contestSentence = "%s keep changing %s. Let only one of them set it; until then the object is reconciled after pauses that double from %s to %s"
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

// contend looks into a write upon that of another client, and into one that handlers make because of our own last write. Where
// writers undo each other, the object is left alone for a while afterwards. A pass counts once.
func (p *pass) contend(ctx context.Context, w *work, edits []patch.Edit) {
	if p.counted || p.memory.ours == "" || len(edits) == 0 {
		return
	}
	if p.memory.contest == nil {
		p.memory.contest = &patch.Contest{}
	}
	if p.memory.ours == version(p.base) {
		p.contendOwn(w)
		return
	}
	p.counted = true
	fields, news := p.memory.contest.Turn(p.base, edits, time.Now())
	if len(fields) == 0 {
		return
	}
	p.hold()
	if news {
		p.tellContest(fields[0], []string{p.settings.Identity, p.other(ctx, fields[0])})
	}
}

// contendOwn looks into a write that handlers make because of our own last write.
func (p *pass) contendOwn(w *work) {
	edits := append(append([]patch.Edit{}, w.rest...), w.status...)
	if !p.chained || len(edits) == 0 {
		return
	}
	p.counted = true
	var handlers []string
	for _, touch := range w.touched {
		handlers = append(handlers, "handler "+touch.by)
	}
	conflicting, news := p.memory.contest.Chain(handlers, edits, time.Now())
	if len(conflicting) == 0 {
		return
	}
	p.hold()
	if news {
		p.tellContest(patch.Touches(edits)[0].Path, conflicting)
	}
}

// hold leaves the object alone after this write. Until the write is answered, left and answers are what it is made upon.
func (p *pass) hold() {
	p.memory.quiet = time.Now().Add(p.memory.contest.Pause())
	p.memory.left, p.memory.answers = p.essence(p.body), p.answers(p.body)
}

// followsOwnWrite reports whether handlers are about to run because of our own last write: no other client has changed the object since, and
// they neither retry nor answer a related object.
func (p *pass) followsOwnWrite() bool {
	if p.memory.ours == "" || p.memory.ours != version(p.base) {
		return false
	}
	woken := p.wakes.of(p.key)
	return slices.ContainsFunc(p.plan.Runs, func(run handler.Run) bool {
		return run.Attempt == 1 && !run.Waited && (run.Reason == cause.Update || run.Reason == cause.Reconcile && !woken[run.ID])
	})
}

// wrote notes what our write has left.
func (p *pass) wrote(answer object.Body, edits []patch.Edit) {
	p.memory.ours = version(answer)
	if p.memory.contest == nil {
		return
	}
	p.memory.contest.Wrote(answer, edits)
	if !time.Now().Before(p.memory.quiet) {
		p.memory.left, p.memory.answers = nil, nil
	} else if body, err := p.kind.Canonical(answer); err == nil {
		p.memory.left, p.memory.answers = p.essence(body), p.answers(body)
	}
}

// other names the other writer of a field by a live read.
func (p *pass) other(ctx context.Context, field object.Path) string {
	if live, err := p.objects.Get(ctx, p.key); err == nil {
		if named := object.Manager(live, field, p.settings.Identity); named != "" {
			return named
		}
	}
	return "another client"
}

// tellContest names the writers.
func (p *pass) tellContest(field object.Path, writers []string) {
	p.log.Warn("two writers keep changing the same field, slowing down", "remedy", "let only one of them set the field",
		"field", field.String(), "writers", writers, "pause", patch.FirstPause.String(), "longestPause", patch.LongestPause.String())
	p.warn(contestReason, handling, contestSentence, strings.Join(writers, " and "), field.String(), patch.FirstPause, patch.LongestPause)
}

// contested is until when an object that is fought over is left alone. A deletion does not wait, nor does a finalizer that is to be added.
func (p *pass) contested() time.Time {
	if !time.Now().Before(p.memory.quiet) || object.Text(p.body, "metadata", "deletionTimestamp") != "" {
		return time.Time{}
	}
	return p.memory.quiet
}

// actUnlessHeld does what is planned, unless a conflict holds the object back. What has changed beside the conflict is handled at once.
func (p *pass) actUnlessHeld(ctx context.Context) (time.Time, error) {
	if p.brake.IsZero() {
		return p.act(ctx)
	}
	left, answers := p.essence(p.body), p.answers(p.body)
	if p.memory.contest.Exempt(p.changedSince(left, answers), time.Now()) { // mutant: pause-delays-people
		p.brake = time.Time{}
		left, p.memory.left = p.memory.left, left
		answers, p.memory.answers = p.memory.answers, answers
		wake, err := p.act(ctx)
		if err != nil && p.memory != nil { // It is tried again, as soon.
			p.memory.left, p.memory.answers = left, answers
		}
		return wake, err
	}
	if p.plan.Finalizer == handler.Add { // mutant: pause-delays-finalizer
		return p.act(ctx)
	}
	return p.brake, nil
}

// answers are the annotations by which people answer and ask this operator.
func (p *pass) answers(body object.Body) object.Body {
	found := object.Body{}
	for key, value := range object.Map(body, "metadata", "annotations") {
		if strings.HasPrefix(key, p.settings.Identity+"/") && key != object.RecordAnnotation(p.settings.Identity) {
			found[key] = value
		}
	}
	return found
}

// changedSince lists what differs from the object as the last write in a conflict has left it.
func (p *pass) changedSince(essence, answers object.Body) []object.Path {
	var changed []object.Path
	for _, difference := range object.Diff(p.memory.left, essence) {
		changed = append(changed, difference.Path)
	}
	for _, difference := range object.Diff(p.memory.answers, answers) {
		changed = append(changed, append(object.Path{"metadata", "annotations"}, difference.Path...))
	}
	return changed
}
