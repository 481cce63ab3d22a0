package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/seen"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindstore"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// errUnseen tells that the cache does not have the object any more.
var errUnseen = fmt.Errorf("not in the cache: %w", kube.ErrGone)

// errOver tells that the object counts as gone, although the cache shows it.
var errOver = errors.New("object treated as deleted")

// indexLag is when a pass that would be ahead of an index of its kind looks again, if the event of the object does not wake it.
const indexLag = 5 * time.Second

// pass is one look at one object, from reading it to writing what came of it.
type pass struct {
	r      *Reconciler
	view   *schemaview.View
	key    types.NamespacedName
	report report.Object
	memory *memory
	// seen is the object as it was read last, or as our last write has left it. shown is the version that the cache shows.
	seen  seen.Object
	shown string
	// plan is what to do, made for the version planned.
	plan    handler.Plan
	planned string
	// held is until when conflicting writes hold the object back; zero for not at all. counted: this pass is counted as one
	// write in a conflict. chained: its handlers run because of our own last write.
	held             time.Time
	counted, chained bool
}

// pass takes the object through one look. It returns when to look again; zero for when something happens.
func (r *Reconciler) pass(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	p := &pass{r: r, view: r.Views.Now(), key: key, report: r.Reports.About(key, nil)}
	wait, err := p.read(ctx)
	if errors.Is(err, kube.ErrGone) {
		if errors.Is(err, errUnseen) {
			p.gone()
		} else {
			p.goneButShown()
		}
		p.r.FirstList.Done(key)
		return time.Time{}, nil
	}
	if _, undecodable := errors.AsType[*kube.UndecodableError](err); undecodable || errors.Is(err, errOver) {
		p.r.FirstList.Done(key) // What cannot be decoded comes again when it is corrected.
		return wait, nil
	}
	if err != nil || !wait.IsZero() { // The first pass of the object is still to come.
		return wait, err // mutant: waiting-is-a-pass
	}
	wake, err := p.look(ctx)
	if errors.Is(err, kube.ErrGone) {
		wake, err = time.Time{}, nil
	}
	if err == nil {
		p.r.FirstList.Done(key)
	}
	return wake, err
}

// look decides what to do with the object that was read, and does it. It returns when to look again, and kube.ErrGone if the object turned out not
// to exist any more.
func (p *pass) look(ctx context.Context) (time.Time, error) {
	if p.memory.freshness.over {
		return time.Time{}, nil
	}
	undecided := p.decide()
	if unsaved := p.memory.unsaved; unsaved != nil {
		return time.Now(), p.save(ctx, unsaved)
	}
	if undecided != nil {
		return time.Time{}, undecided
	}
	p.stopDaemons()
	p.held = p.conflictPause()
	if p.held.IsZero() {
		if handed, is := p.r.State.Objects.TakeEdits(p.key, p.memory.uid); is {
			return time.Now(), p.deliver(ctx, handed)
		}
	}
	if p.skipUnmatched() {
		p.r.Reports.Metrics.Settled(p.key.String())
		return time.Time{}, nil
	}
	if p.held.IsZero() || p.plan.Finalizer == handler.Add { // mutant: pause-delays-finalizer
		return p.act(ctx)
	}
	return p.held, nil
}

// act does what is planned. It returns when to look again.
func (p *pass) act(ctx context.Context) (time.Time, error) {
	if err := p.refreshBeforeRun(ctx); err != nil {
		if errors.Is(err, kube.ErrGone) {
			p.goneButShown()
		}
		return time.Time{}, err
	}
	p.reportPlan()
	p.noteResumed()
	if p.plan.Finalizer == handler.Add { // mutant: finalizer-after-effect
		if err := p.mark(ctx); err != nil {
			return time.Time{}, err
		}
		if err := p.decide(); err != nil || !p.held.IsZero() {
			return p.held, err
		}
	}
	p.chained = p.followsOwnWrite()
	done, err := p.run(ctx)
	if err == nil {
		err = p.save(ctx, done)
	}
	if err != nil {
		return time.Time{}, err
	}
	p.notePending(done)
	p.startDaemons() //nolint:contextcheck // They live longer than the pass.
	return p.withRemoval(p.next(done)), nil
}

// decide plans what to do. The error says that a filter could not be asked.
func (p *pass) decide() error {
	p.plan, p.planned = p.view.Pure.Decide(p.state()), p.seen.Version()
	if p.plan.Clocks != nil {
		p.memory.clocks = p.plan.Clocks
	}
	return p.plan.Err
}

// read takes the object from the cache, or live when the cache has not shown our own last write in time. A time says
// that it is too early to look.
func (p *pass) read(ctx context.Context) (time.Time, error) {
	cached := p.r.Kind.New()
	err := p.r.Cache.Get(ctx, p.key, cached)
	if _, failed := errors.AsType[*kube.UndecodableError](err); failed {
		return time.Time{}, cmp.Or(p.skipUndecodable(ctx, cached), err)
	}
	if apierrors.IsNotFound(err) {
		return time.Time{}, errUnseen
	} else if err != nil {
		return time.Time{}, fmt.Errorf("read %s from the cache: %w", p.key, err)
	}
	p.shown = cached.GetResourceVersion()
	if last := p.r.State.Objects.Known(p.key); last != nil {
		trust, until := last.freshness.of(p.shown, last.uid == string(cached.GetUID()), time.Now())
		switch trust {
		case trusted:
		case tooOld:
			return until, nil
		case untrusted:
			return time.Time{}, p.readLive(ctx)
		case ended:
			return until, errOver // What calls for a pass now takes the place of the later one in the queue.
		}
	}
	if p.r.Behind(p.key, cached.GetResourceVersion()) {
		return time.Now().Add(indexLag), nil
	}
	body, err := p.r.Kind.Body(cached)
	if err != nil {
		return time.Time{}, fmt.Errorf("convert %s: %w", p.key, err)
	}
	return time.Time{}, p.open(seen.Cached(body))
}

// readLive opens the pass on the object as the API server has it.
func (p *pass) readLive(ctx context.Context) error {
	live, err := p.r.Server.Get(ctx, p.key)
	if err != nil {
		return err
	}
	return p.openRaw(live)
}

// openRaw opens the pass on an object as the API server sent it.
func (p *pass) openRaw(raw object.Body) error {
	body, err := p.canonical(raw)
	if err != nil {
		return fmt.Errorf("convert %s: %w", p.key, err)
	}
	if err := p.open(seen.Live(body, raw)); err != nil {
		return err
	}
	p.memory.freshness.read(raw, p.shown, time.Now())
	return nil
}

// open takes what was read, and finds its record: the object's own, else the one that this process remembers for the same object.
func (p *pass) open(read seen.Object) error {
	p.seen = read
	p.report = p.r.Reports.About(p.key, read.Body())
	p.recall()
	if !p.view.Pure.Recorded() {
		return nil
	}
	former := p.r.Store.Former(p.key.Namespace, p.view.Description.Carrier) // mutant: forged-record-believed
	found, err := record.Read(read.Raw(), p.r.Settings.Identity, p.view.Description.Carrier, former)
	if errors.Is(err, record.ErrNewer) {
		p.noteRecorded() // mutant: newer-record-is-missing
		return fmt.Errorf("skip %s: %w", p.key, err)
	}
	if err != nil {
		p.report.Log.Warn("cannot read the stored record", "error", err)
	}
	p.noteFound(found)
	chosen, err := seen.Choose(found, p.memory.record) // mutant: attempts-lost
	if err != nil {
		return fmt.Errorf("decode the record of %s kept in memory: %w", p.key, err)
	}
	switch {
	case chosen.Remembered():
	case found.Partial:
		chosen = p.doubtResults(chosen, found)
	case found.Record != nil:
		chosen = p.checkWriter(chosen, found)
		p.memory.record = found.Text
	}
	if !read.Deleting() { // mutant: deleted-believed
		chosen = chosen.OfLiving()
	}
	p.seen = read.WithRecord(chosen)
	return nil
}

// noteFound notes for the books of the kind what record an object has.
func (p *pass) noteFound(found record.Stored) {
	if found.Record != nil { // mutant: wait-lost-at-restart
		p.noteRecorded()
	} else {
		p.noteMissing()
	}
	p.r.Store.Note(p.key.Namespace, p.memory.uid, kindstore.Found{Found: found.Record != nil, Unmoved: found.Record != nil && found.From != p.view.Description.Carrier})
}

// state is what the core decides from.
func (p *pass) state() handler.State {
	return handler.State{
		Namespace: p.key.Namespace, Name: p.key.Name, UID: p.memory.uid,
		APIVersion: p.r.Kind.GVK.GroupVersion().String(),
		Essence:    p.r.essence(p.seen.Body()),
		Record:     p.seen.Record().Value(),
		Deleting:   p.seen.Deleting(),
		Marked:     p.marked(),
		Resumed:    p.memory.resumed,
		Levels:     p.memory.levels,
		Clocks:     p.memory.clocks,
		Broken:     p.memory.broken,
		Woken:      p.r.State.Objects.Triggered(p.key),
		Held:       p.r.daemons.Hold(p.key, p.memory.uid),
		Waits:      p.memory.waits,
		Settled:    p.settled(), // mutant: lost-by-finalizer
		Inherited:  p.memory.inherited,
		Older:      p.memory.older,
		Recreate:   object.Text(p.seen.Body(), "metadata", "annotations", object.RecreateAnnotation(p.r.Settings.Identity)),
		Release:    object.Text(p.seen.Body(), "metadata", "annotations", object.ReleaseAnnotation(p.r.Settings.Identity)),
		Words:      object.EffectWords(p.seen.Body(), p.r.Settings.Identity),
		Now:        time.Now(),
	}
}

// mark adds our finalizer before any handler runs, and puts a lost record back where that is the same write. The pass
// goes on with the answer.
func (p *pass) mark(ctx context.Context) error {
	found := p.seen.Record()
	lost := found.Value() != nil && !found.InPlace() && journal.Resource(p.view.Description.Carrier, p.view.Description.HasStatus) == ""
	w := &work{journal: journal.OnlyFinalizer(p.about(p.seen.Body()), p.plan.Record, !lost)}
	if err := p.save(ctx, w); err != nil {
		return err
	}
	return p.openRaw(p.seen.Raw())
}

// next tells when to look again, after what was done: at once if something more is due.
func (p *pass) next(done *work) time.Time {
	if p.plan.Cause == cause.Free {
		return time.Time{}
	}
	if done.canceled {
		return time.Now()
	}
	if !done.attempted {
		p.memory.inherited, p.memory.older = false, false
		p.memory.unsure = p.memory.unsure && p.plan.Record.Open()
		return p.plan.Wake
	}
	state := p.state()
	if state.Essence = done.journal.Current(); !p.plan.Unrecorded {
		stored := done.journal.Record()
		state.Record = &stored
	}
	following := p.view.Pure.Decide(state)
	if len(following.Runs) > 0 || len(following.GivenUp) > 0 || following.Err != nil {
		return state.Now
	}
	return following.Wake
}
