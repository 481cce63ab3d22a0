package reconciler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// patience is how long a reconciliation waits for the cache to show our own last write before it reads live.
const patience = 5 * time.Second

// goneRecheck is how long an object counts as gone because of a 404 before it is read again, if the cache still shows it.
const goneRecheck = time.Minute

// freshness is what this process knows of the newest version of an object, which the cache may not show yet. The zero value knows nothing.
type freshness struct {
	// newest is the newest resource version that we have seen live, mostly that of our last write: what the cache shows
	// from before it is not to be trusted until patience ends.
	newest   string
	patience time.Time
	// outdated is the version that the cache has shown when the API server had an older one: its etcd was restored. The cache shows it until it has listed
	// everything again. It is "" otherwise.
	outdated string
	// over: the object is gone, or nothing held it any more after our last write. The cache may still show it, in a version that
	// another client wrote before us, and as new as our answer. A version newer than newest refutes it, and so does a live read at
	// recheck, which is zero where our own write has ended the object.
	over    bool
	recheck time.Time
}

// trust is what a version that the cache shows is good for.
type trust int

const (
	// trusted: it can be handled.
	trusted trust = iota
	// tooOld: the cache will show a newer one.
	tooOld
	// untrusted: the object is to be read live.
	untrusted
	// ended: the object counts as gone.
	ended
)

// of returns what a version that the cache shows is good for, and when to look again. Same tells that it is of the object that is known.
func (f *freshness) of(shown string, same bool, now time.Time) (trust, time.Time) {
	over := f.over && same
	refuted := over && f.refuted(shown, now) // mutant: gone-for-ever
	stale := f.stale(shown)

	switch {
	case !refuted && stale && now.Before(f.patience):
		return tooOld, f.patience
	case refuted || stale:
		return untrusted, time.Time{}
	case over:
		return ended, f.recheck
	default:
		return trusted, time.Time{}
	}
}

// stale reports whether the cache shows a version that is not the newest one that is known.
func (f *freshness) stale(shown string) bool {
	return shown == f.outdated || kube.Older(shown, f.newest) // mutant: stale-read-trusted
}

// refuted reports whether an object that counts as gone is to be read again: the cache shows a version that is newer than all that is
// known, or enough time has passed since the API server said that it does not exist.
func (f *freshness) refuted(shown string, now time.Time) bool {
	return shown != f.newest && kube.Older(f.newest, shown) || !f.recheck.IsZero() && !now.Before(f.recheck)
}

// wrote notes an object as our write has left it while the cache shows a version.
func (f *freshness) wrote(answer object.Body, shown string, now time.Time) {
	f.read(answer, shown, now)
	f.recheck = time.Time{} // mutant: pod-gone-before-grace-period
}
