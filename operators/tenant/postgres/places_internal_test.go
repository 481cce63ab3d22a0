package postgres

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A database that hangs is tried again after 5 seconds, and then at growing intervals up to five minutes. When it works, it has no wait. It stays suspect,
// with the one place of such databases, for ten minutes. Others wait for it a second at most, and a deletion as long as it takes.
func TestADatabaseThatHangsHasItsOwnBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(1)
		const database, other = "t_hangs", "t_hung"
		hangs := func(name string) {
			t.Helper()
			if err := p.note(name, hangTime, errors.New("timeout")); !errors.Is(err, ErrHangs) {
				t.Errorf("a hang is %v", err)
			}
		}
		enters := func(name string) (leave func(), waited time.Duration, err error) {
			begun := time.Now()
			leave, err = p.enter(t.Context(), name)
			return leave, time.Since(begun), err
		}
		for _, wait := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
			hangs(database)
			<-time.After(wait*time.Second - time.Millisecond)
			if _, _, err := enters(database); !errors.Is(err, ErrHangs) {
				t.Errorf("before %d seconds: %v", wait, err)
			}
			<-time.After(time.Millisecond)
			leave, _, err := enters(database)
			if err != nil {
				t.Fatalf("after %d seconds: %v", wait, err)
			}
			leave()
		}
		hangs(other)
		<-time.After(5 * time.Second)
		leave, _, err := enters(database)
		if err != nil {
			t.Fatal(err)
		}
		if _, waited, err := enters(other); !errors.Is(err, ErrHangs) || waited != suspectWait {
			t.Errorf("beside another one that hung: %v after %s", err, waited)
		}
		if free, waited, err := enters("t_healthy"); err != nil || waited != 0 {
			t.Errorf("a database that never hung: %v after %s", err, waited)
		} else {
			free()
		}
		go func() { <-time.After(time.Minute); leave() }()
		begun := time.Now()
		if free, err := p.insist(t.Context(), other); err != nil || time.Since(begun) != time.Minute {
			t.Errorf("a deletion: %v after %s", err, time.Since(begun))
		} else {
			free()
		}
		_ = p.note(database, 0, nil)
		if leave, waited, err := enters(database); err != nil || waited != 0 {
			t.Errorf("when it works again: %v after %s", err, waited)
		} else {
			leave()
		}
		<-time.After(suspectTime)
		if _, suspect := p.last(database); suspect {
			t.Error("it is suspect for ever")
		}
	})
}
