package reconciler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/daemons"
)

// recall finds what this process remembers of the object.
func (p *pass) recall() {
	uid := object.Text(p.seen.Body(), "metadata", "uid")
	last := p.r.State.Objects.Known(p.key)
	if last == nil || last.uid != uid {
		if last != nil {
			p.r.Store.Gone(p.key.Namespace, last.uid)
			p.noteEnd(last)
		}
		p.meet(uid)
	} else {
		p.memory = last
	}
	p.memory.marked = p.marked()
}

// meet begins to remember an object.
func (p *pass) meet(uid string) {
	p.memory = newMemory(uid)
	p.r.State.Objects.Know(p.key, p.memory)
	p.memory.older = p.r.FirstList.Waits(p.key) || p.inheritedUnseen(p.seen.Body())
	p.memory.doubted = p.r.doubtful() // What the cache does not show yet is read live before anything runs.
	p.memory.inherited = p.memory.older || p.memory.doubted && p.r.Elects
	p.reportReturn()
}

func (p *pass) marked() bool { return p.seen.HasFinalizer(p.r.Settings.Finalizer()) }

// noteEnd remembers that the deletion of an object that is gone was handled. If it was not, because our finalizer was still on the object, noteEnd reports
// that, and returns false: another client has removed the finalizer, or etcd was restored from a copy that does not have the object. The answer to our own
// removal can be lost, so it counts from the request on.
func (p *pass) noteEnd(of *memory) bool {
	switch {
	case of.released:
		p.r.State.Objects.End(of.uid, time.Now())
	case of.marked:
		p.report.Log.Warn("the object is gone, and its delete handlers have not run", "uid", of.uid, "finalizer", p.r.Settings.Finalizer(),
			"remedy", "remove by hand what the handlers made outside of the cluster, unless an object of the same name uses it")
		return false
	}
	return true
}

// reportReturn reports that an object is there whose deletion this process has handled: etcd was restored from a copy that has it.
func (p *pass) reportReturn() {
	if ended := p.r.State.Objects.EndOf(p.memory.uid); !ended.IsZero() {
		p.report.Log.Warn("the object is back although its delete handlers have run", "uid", p.memory.uid, "deleted", ended.UTC(),
			"remedy", "delete the object, and create it again if it is wanted: what the delete handlers removed outside of the cluster is not there")
	}
}

// gone forgets an object that neither the API server nor the cache has any more.
func (p *pass) gone() {
	if last := p.r.State.Objects.Known(p.key); last != nil { // Objects that match no handler get no log lines.
		if p.noteEnd(last) {
			p.report.Log.Info("the object is gone")
		}
		p.r.State.Objects.Forget(p.key)
		p.r.Store.Gone(p.key.Namespace, last.uid)
		p.r.RecordOwners.Forget(last.uid)
	}
	p.endHandling()
}

// goneButShown handles an object that the API server no longer has although the cache still shows it. It counts as over, and is read again
// after a while.
func (p *pass) goneButShown() {
	if last := p.r.State.Objects.Known(p.key); last != nil {
		last.freshness.gone(p.shown, time.Now())
		p.r.WakeAfter(p.key, goneRecheck)
	}
	p.endHandling()
}

// endHandling stops all that goes on for an object that does not exist any more.
func (p *pass) endHandling() {
	p.r.State.Objects.DropTriggers(p.key)
	p.r.daemons.StopAll(p.key, daemons.ErrObjectGone)
	p.r.State.Objects.DropEdits(p.key)
	p.r.Reports.Metrics.Settled(p.key.String())
}
