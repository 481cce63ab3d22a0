package reconciler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// removes reports whether it is time to try again to remove the record in the other carrier.
func (m *memory) removes(now time.Time) bool {
	return !m.removal.IsZero() && !now.Before(m.removal)
}

// withRemoval returns when to look again, given when there is something else to do.
func (m *memory) withRemoval(wake time.Time) time.Time {
	if due := m.removal; !due.IsZero() && (wake.IsZero() || due.Before(wake)) {
		return due
	}
	return wake
}

// retries reports whether some timer is tried again, out of its turn.
func (m *memory) retries() bool {
	for _, clock := range m.clocks {
		if clock.Retries() {
			return true
		}
	}
	return false
}

// memory is what this process knows of one object beside its stored record. Passes of one object never overlap, so it
// needs no lock.
type memory struct {
	uid string
	// record is the newest text of the record that was read or written.
	record string
	// freshness is the newest version that is known of the object.
	freshness freshness
	// marked: our finalizer is on the object. released: the deletion was handled, and we have asked to remove the finalizer.
	marked, released bool
	// inherited: the object was there when this process began, or may have been, and has not been settled by it since. Older: it was there.
	inherited, older bool
	// othersRecord is the text of the record that this process has read first, if another client has written it. It can be older than what
	// handlers did. Until nothing is open, unsure is set: effects that the record does not know may have been made.
	othersRecord string
	unsure       bool
	// doubted: another replica may have written what the cache does not show. A live read ends that.
	doubted bool
	// resumed are the resume handlers that are finished in this process.
	resumed map[string]bool
	// waits are times to wait for that are newer than the record's, by handler.
	waits map[string]time.Time
	// levels is how level-triggered handlers stand in this process.
	levels map[string]record.Entry
	// broken are the handlers whose last attempt failed because of a programming error.
	broken map[string]bool
	// clocks is how timers stand in this process.
	clocks map[string]handler.Clock
	// started are the daemons that this process has started once.
	started map[string]bool
	// ours is the version that our last write has made. conflicts limits writes that go on and on.
	ours      string
	conflicts conflicts
	// deletionReported: the log says which handlers the deletion has superseded. releaseReported is the newest value of the release
	// annotation of which the log says that it names no delete handler.
	deletionReported bool
	releaseReported  string
	// withoutConditions: the API server rejects the conditions of the framework in the object.
	withoutConditions bool
	// removal is when to try again to remove the record that an earlier release keeps in the other carrier; zero for never. removalWait is how
	// long the last wait was.
	removal     time.Time
	removalWait time.Duration
	// intents is when intents of effects were seen, and when calls for them ended.
	intents attempt.IntentTimes
	// denied is the text with which admission denied the last write, "" after a record was written. Until then, the newest record is only in memory.
	denied string
	// unsaved is work that was done and could not be written yet.
	unsaved *work
}

func newMemory(uid string) *memory {
	return &memory{
		uid: uid, resumed: map[string]bool{}, waits: map[string]time.Time{}, levels: map[string]record.Entry{},
		clocks: map[string]handler.Clock{}, started: map[string]bool{}, broken: map[string]bool{},
	}
}
