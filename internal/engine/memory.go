package engine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// memory is what this process knows of one object beside its stored record. Passes of one object never overlap, so it
// needs no lock.
type memory struct {
	uid string
	// record is the newest text of the record that was read or written.
	record string
	// newest is the newest resource version that we have seen live, mostly that of our last write: what the cache shows
	// from before it is not to be trusted until patience ends.
	newest   string
	patience time.Time
	// over: the object is gone, or nothing held it any more after our last write. The cache may still show it, in a version that
	// somebody else wrote before us, and as new as our answer.
	over bool
	// inherited: the object was there when this process began, or may have been, and has not been settled by it since. Older: it was there.
	inherited, older bool
	// resumed are the resume handlers that are finished in this process.
	resumed map[string]bool
	// waits are times to wait for that are newer than the record's, by handler.
	waits map[string]time.Time
	// levels is how level-triggered handlers stand in this process.
	levels map[string]record.Entry
	// clocks is how timers stand in this process.
	clocks map[string]handler.Clock
	// begun are the daemons that this process has started once.
	begun map[string]bool
	// ours is the version that our last write has made. contest looks into the writes of others between ours; until quiet
	// the object is left alone.
	ours    string
	contest *patch.Contest
	quiet   time.Time
	// deletionTold: what the deletion has superseded was told. releaseTold is the newest value of the annotation that
	// releases objects of which was told that it names nobody.
	deletionTold bool
	releaseTold  string
	// unsaved is work that was done and could not be written yet.
	unsaved *work
}

// memories holds the memory of every object of one kind.
type memories struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*memory
}

// of returns the memory of the object with this uid. An object that was re-created under the same name has a new one;
// known tells whether this process has seen this very object before.
func (m *memories) of(key types.NamespacedName, body object.Body) (found *memory, known bool) {
	uid := object.Text(body, "metadata", "uid")
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, known = m.byKey[key]; known && found.uid == uid {
		return found, true
	}
	found = &memory{
		uid: uid, resumed: map[string]bool{}, waits: map[string]time.Time{}, levels: map[string]record.Entry{},
		clocks: map[string]handler.Clock{}, begun: map[string]bool{},
	}
	if m.byKey == nil {
		m.byKey = map[types.NamespacedName]*memory{}
	}
	m.byKey[key] = found
	return found, false
}

// at returns the memory of whatever object had this name last, or nil.
func (m *memories) at(key types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byKey[key]
}

func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
