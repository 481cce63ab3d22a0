package postgres

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// hung notes that a connection to a database hung.
func hung(t *testing.T, p *places, database string) {
	t.Helper()
	if err := p.note(database, hangTime, errors.New("timeout")); !errors.Is(err, ErrHangs) {
		t.Errorf("a hang is %v", err)
	}
}

// entered expects that a connection to a database gets a place after a time, or none after a time.
func entered(t *testing.T, p *places, database string, want error, after time.Duration) (leave func()) {
	t.Helper()
	begun := time.Now()
	leave, err := p.enter(t.Context(), database)
	if took := time.Since(begun); !errors.Is(err, want) || took != after {
		t.Fatalf("a connection to %s: %v after %s, want %v after %s", database, err, took, want, after)
	}
	return leave
}

// A database that hangs is tried again after 5 seconds, and then at growing intervals up to five minutes. When it works, it has no wait. It is suspect for
// ten minutes.
func TestADatabaseThatHangsHasItsOwnBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const database = "t_hangs"
		p := newPlaces(1)
		for _, seconds := range []int{5, 10, 20, 40, 80, 160, 300, 300} {
			wait := time.Duration(seconds) * time.Second
			hung(t, p, database)
			<-time.After(wait - time.Millisecond)
			entered(t, p, database, ErrHangs, 0)
			<-time.After(time.Millisecond)
			entered(t, p, database, nil, 0)()
		}
		hung(t, p, database)
		if err := p.note(database, 0, nil); err != nil {
			t.Error(err)
		}
		entered(t, p, database, nil, 0)()
		<-time.After(suspectTime + time.Millisecond)
		if _, suspect := p.last(database); suspect {
			t.Error("it is suspect for ever")
		}
	})
}

// Databases that hung share one place. They wait a second for it, and take none from other databases and from deletions.
func TestDatabasesThatHungShareOnePlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(2)
		hung(t, p, "t_first")
		hung(t, p, "t_second")
		<-time.After(firstHangWait)
		leave := entered(t, p, "t_first", nil, 0)
		entered(t, p, "t_second", ErrHangs, suspectWait)
		entered(t, p, "t_healthy", nil, 0)()
		for range 2 {
			if _, err := p.insist(t.Context()); err != nil {
				t.Error(err)
			}
		}
		leave()
		entered(t, p, "t_second", nil, 0)()
	})
}
