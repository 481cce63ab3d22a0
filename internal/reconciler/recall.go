package reconciler

import (
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/seen"
)

// recall finds what this process remembers of the object.
func (d reader) recall() {
	uid := object.Text(d.s.seen.Body(), "metadata", "uid")
	last := d.s.r.State.Objects.Known(d.s.key)
	if last == nil || last.uid != uid {
		if last != nil {
			d.s.r.Store.Gone(d.s.key.Namespace, last.uid)
			d.s.noteEnd(last)
		}
		d.meet(uid)
	} else {
		d.s.memory = last
	}
	d.s.memory.marked = d.s.marked()
}

// meet begins to remember an object.
func (d reader) meet(uid string) {
	d.s.memory = newMemory(uid)
	d.s.r.State.Objects.Know(d.s.key, d.s.memory)
	d.s.memory.older = d.s.r.FirstList.Waits(d.s.key) || d.s.inheritedUnseen(d.s.seen.Body())
	d.s.memory.doubted = d.s.r.doubtful() // What the cache does not show yet is read live before anything runs.
	d.s.memory.inherited = d.s.memory.older || d.s.memory.doubted && d.s.r.Elects
	d.reportReturn()
}

// reportReturn reports that an object is there whose deletion this process has handled: etcd was restored from a copy that has it.
func (d reader) reportReturn() {
	if ended := d.s.r.State.Objects.EndOf(d.s.memory.uid); !ended.IsZero() {
		d.s.report.Log.Warn("the object is back although its delete handlers have run", "uid", d.s.memory.uid, "deleted", ended.UTC(),
			"remedy", "delete the object, and create it again if it is wanted: what the delete handlers removed outside of the cluster is not there")
	}
}

// checkWriter looks at who has written the first record that this process reads of an object. One of another client can be older than what
// handlers did. It is used and written again, and the effects that it does not know count as possibly made.
func (d reader) checkWriter(chosen seen.Record, found record.Stored) seen.Record {
	if other := d.s.r.RecordOwners.Other(d.s.memory.uid, found.From); other != "" && d.s.memory.record == "" {
		d.s.memory.othersRecord, d.s.memory.unsure = found.Text, true
		d.s.report.RecordReplaced(other, found.From)
	}
	if found.Text == d.s.memory.othersRecord {
		return chosen.Newer().Doubted(d.s.view.Pure.Creating(*found.Record))
	}
	return chosen
}

// doubtResults uses a record of which only the progress is read. What its steps and effects returned is not known, so effects count as possibly
// made.
func (d reader) doubtResults(chosen seen.Record, found record.Stored) seen.Record {
	if d.s.memory.othersRecord != found.Text {
		d.s.memory.othersRecord, d.s.memory.unsure = found.Text, true
		d.s.report.Log.Warn("nothing says that an earlier release kept records here, so any client may have written this one: only which handlers have finished is used of it",
			"record", found.From.Path(d.s.r.Settings.Identity).String())
	}
	return chosen.Doubted(d.s.view.Pure.Creating(*found.Record))
}
