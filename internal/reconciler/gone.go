package reconciler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// noteEnd remembers that the deletion of an object that is gone was handled. If it was not, because our finalizer was still on the object, noteEnd reports
// that, and returns false: another client has removed the finalizer, or etcd was restored from a copy that does not have the object. The answer to our own
// removal can be lost, so it counts from the request on.
func (s *subject) noteEnd(of *memory) bool {
	switch {
	case of.released:
		s.r.State.Objects.End(of.uid, time.Now())
	case of.marked:
		s.report.Log.Warn("the object is gone, and its delete handlers have not run", "uid", of.uid, "finalizer", s.r.Settings.Finalizer(),
			"remedy", "remove by hand what the handlers made outside of the cluster, unless an object of the same name uses it")
		return false
	}
	return true
}

// gone forgets an object that neither the API server nor the cache has any more.
func (s *subject) gone() {
	if last := s.r.State.Objects.Known(s.key); last != nil { // Objects that match no handler get no log lines.
		if s.noteEnd(last) {
			s.report.Log.Info("the object is gone")
		}
		s.r.State.Objects.Forget(s.key)
		s.r.Store.Gone(s.key.Namespace, last.uid)
		s.r.RecordOwners.Forget(last.uid)
	}
	s.endHandling()
}

// goneButShown handles an object that the API server no longer has although the cache still shows it. It counts as over, and is read again
// after a while.
func (s *subject) goneButShown() {
	if last := s.r.State.Objects.Known(s.key); last != nil {
		last.freshness.gone(s.shown, time.Now())
		s.r.WakeAfter(s.key, goneRecheck)
	}
	s.endHandling()
}

// endHandling stops all that goes on for an object that does not exist any more.
func (s *subject) endHandling() {
	s.r.State.Objects.DropTriggers(s.key)
	s.r.daemons.StopAll(s.key, daemons.ErrObjectGone)
	s.r.State.Objects.DropEdits(s.key)
	s.r.Reports.Metrics.Settled(s.key.String())
}

// gone notes that the API server does not have an object of which the cache shows a version.
func (f *freshness) gone(shown string, now time.Time) {
	f.over, f.recheck = true, now.Add(goneRecheck)
	if kube.Older(f.newest, shown) {
		f.newest = shown
	}
}
