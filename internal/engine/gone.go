package engine

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/daemons"
)

// recall finds what this process remembers of the object.
func (p *pass) recall() {
	uid := object.Text(p.seen.Body(), "metadata", "uid")
	last := p.entries.Known(p.key)
	if last == nil || last.uid != uid {
		if last != nil {
			p.store.Gone(p.key.Namespace, last.uid)
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
	p.entries.Know(p.key, p.memory)
	p.memory.older = p.startup.Waits(p.key) || p.inheritedUnseen(p.seen.Body())
	p.memory.doubted = p.doubtful() // What the cache does not show yet is read live before anything runs.
	p.memory.inherited = p.memory.older || p.memory.doubted && p.election.Lease != nil
	p.reportReturn()
}

func (p *pass) marked() bool { return p.seen.HasFinalizer(p.settings.Finalizer()) }

// noteEnd remembers that the deletion of an object that is gone was handled. If it was not, because our finalizer was still on the object, noteEnd reports
// that, and returns false: another client has removed the finalizer, or etcd was restored from a copy that does not have the object. The answer to our own
// removal can be lost, so it counts from the request on.
func (p *pass) noteEnd(of *memory) bool {
	switch {
	case of.released:
		p.entries.End(of.uid, time.Now())
	case of.marked:
		p.report.Log.Warn("the object is gone, and its delete handlers have not run", "uid", of.uid, "finalizer", p.settings.Finalizer(),
			"remedy", "remove by hand what the handlers made outside of the cluster, unless an object of the same name uses it")
		return false
	}
	return true
}

// reportReturn reports that an object is there whose deletion this process has handled: etcd was restored from a copy that has it.
func (p *pass) reportReturn() {
	if ended := p.entries.EndOf(p.memory.uid); !ended.IsZero() {
		p.report.Log.Warn("the object is back although its delete handlers have run", "uid", p.memory.uid, "deleted", ended.UTC(),
			"remedy", "delete the object, and create it again if it is wanted: what the delete handlers removed outside of the cluster is not there")
	}
}

// gone forgets an object that neither the API server nor the cache has any more.
func (p *pass) gone() {
	if last := p.entries.Known(p.key); last != nil { // Objects that match no handler get no log lines.
		if p.noteEnd(last) {
			p.report.Log.Info("the object is gone")
		}
		p.entries.Forget(p.key)
		p.store.Gone(p.key.Namespace, last.uid)
		p.recordOwners.Forget(last.uid)
	}
	p.endHandling()
}

// goneButShown handles an object that the API server no longer has although the cache still shows it. It counts as over, and is read again
// after a while.
func (p *pass) goneButShown() {
	if last := p.entries.Known(p.key); last != nil {
		last.freshness.gone(p.shown, time.Now())
		p.queue.AddAfter(reconcile.Request{NamespacedName: p.key}, goneRecheck)
	}
	p.endHandling()
}

// endHandling stops all that goes on for an object that does not exist any more.
func (p *pass) endHandling() {
	p.entries.DropTriggers(p.key)
	p.daemons.StopAll(p.key, daemons.ErrObjectGone)
	p.entries.DropEdits(p.key)
	p.reports.Metrics.Settled(p.key.String())
}
