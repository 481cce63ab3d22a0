package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/seen"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindstore"
)

// errUnseen tells that the cache does not have the object any more.
var errUnseen = fmt.Errorf("not in the cache: %w", kube.ErrGone)

// errOver tells that the object counts as gone, although the cache shows it.
var errOver = errors.New("object treated as deleted")

// indexLag is when a reconciliation that would be ahead of an index of its kind looks again, if the event of the object does not wake it.
const indexLag = 5 * time.Second

// reader reads the object, and finds what this process knows of it.
type reader struct{ s *subject }

// read takes the object from the cache, or live when the cache has not shown our own last write in time. A time says
// that it is too early to look.
func (d reader) read(ctx context.Context) (time.Time, error) {
	cached := d.s.r.Kind.New()
	err := d.s.r.Cache.Get(ctx, d.s.key, cached)
	if _, failed := errors.AsType[*kube.UndecodableError](err); failed {
		return time.Time{}, cmp.Or(d.skipUndecodable(ctx, cached), err)
	}
	if apierrors.IsNotFound(err) {
		return time.Time{}, errUnseen
	} else if err != nil {
		return time.Time{}, fmt.Errorf("read %s from the cache: %w", d.s.key, err)
	}
	d.s.shown = cached.GetResourceVersion()
	if last := d.s.r.State.Objects.Known(d.s.key); last != nil {
		trust, until := last.freshness.of(d.s.shown, last.uid == string(cached.GetUID()), time.Now())
		switch trust {
		case trusted:
		case tooOld:
			return until, nil
		case untrusted:
			return time.Time{}, d.readLive(ctx)
		case ended:
			return until, errOver // What calls for a reconciliation now takes the place of the later one in the queue.
		}
	}
	if d.s.r.Behind(d.s.key, cached.GetResourceVersion()) {
		return time.Now().Add(indexLag), nil
	}
	body, err := d.s.r.Kind.Body(cached)
	if err != nil {
		return time.Time{}, fmt.Errorf("convert %s: %w", d.s.key, err)
	}
	return time.Time{}, d.open(seen.Cached(body))
}

// read notes an object as the API server has sent it while the cache shows a version.
func (f *freshness) read(raw object.Body, shown string, now time.Time) {
	f.newest, f.patience, f.over, f.outdated = seen.Version(raw), now.Add(patience), object.Ended(raw), ""
	if kube.Older(f.newest, shown) {
		f.outdated = shown // mutant: version-of-before-trusted
	}
}

// readLive opens the reconciliation on the object as the API server has it.
func (d reader) readLive(ctx context.Context) error {
	live, err := d.s.r.Server.Get(ctx, d.s.key)
	if err != nil {
		return err
	}
	return d.openRaw(live)
}

// openRaw opens the reconciliation on an object as the API server sent it.
func (d reader) openRaw(raw object.Body) error {
	body, err := d.s.r.canonical(raw)
	if err != nil {
		return fmt.Errorf("convert %s: %w", d.s.key, err)
	}
	if err := d.open(seen.Live(body, raw)); err != nil {
		return err
	}
	d.s.memory.freshness.read(raw, d.s.shown, time.Now())
	return nil
}

// open takes what was read, and finds its record: the object's own, else the one that this process remembers for the same object.
func (d reader) open(read seen.Object) error {
	d.s.seen = read
	d.s.report = d.s.r.Reports.About(d.s.key, read.Body())
	d.recall()
	if !d.s.view.Pure.Recorded() {
		return nil
	}
	former := d.s.r.Store.Former(d.s.key.Namespace, d.s.view.Description.Carrier) // mutant: forged-record-believed
	found, err := record.Read(read.Raw(), d.s.r.Settings.Identity, d.s.view.Description.Carrier, former)
	if errors.Is(err, record.ErrNewer) {
		d.s.noteRecorded() // mutant: newer-record-is-missing
		return fmt.Errorf("skip %s: %w", d.s.key, err)
	}
	if err != nil {
		d.s.report.Log.Warn("cannot read the stored record", "error", err)
	}
	d.noteFound(found)
	chosen, err := seen.Choose(found, d.s.memory.record) // mutant: attempts-lost
	if err != nil {
		return fmt.Errorf("decode the record of %s kept in memory: %w", d.s.key, err)
	}
	switch {
	case chosen.Remembered():
	case found.Partial:
		chosen = d.doubtResults(chosen, found)
	case found.Record != nil:
		chosen = d.checkWriter(chosen, found)
		d.s.memory.record = found.Text
	}
	if !read.Deleting() { // mutant: deleted-believed
		chosen = chosen.OfLiving()
	}
	d.s.seen = read.WithRecord(chosen)
	return nil
}

// noteFound notes for the books of the kind what record an object has.
func (d reader) noteFound(found record.Stored) {
	if found.Record != nil { // mutant: wait-lost-at-restart
		d.s.noteRecorded()
	} else {
		d.s.noteMissing()
	}
	d.s.r.Store.Note(d.s.key.Namespace, d.s.memory.uid, kindstore.Found{Found: found.Record != nil, Unmoved: found.Record != nil && found.From != d.s.view.Description.Carrier})
}
