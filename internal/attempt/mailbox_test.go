package attempt

import (
	"errors"
	"testing"
)

// What an attempt posts is taken once, and its end stays known.
func TestWhatAnAttemptPostsIsTakenOnce(t *testing.T) {
	m, answer, failed := NewMailbox(), make(chan error, 1), errors.New("failed")
	expect := func(want Mail) {
		t.Helper()
		if got := m.Take(); got != want {
			t.Errorf("it takes %+v, want %+v", got, want)
		}
	}
	expect(Mail{})
	for range 2 {
		m.mu.Lock()
		m.step()
		m.mu.Unlock()
	}
	if err := m.declare(Waiting{ID: "a", answer: answer}); err != nil {
		t.Error(err)
	}
	<-m.Arrived
	expect(Mail{Stepped: true, Declared: true})
	expect(Mail{Declared: true}) // Until it is taken itself.
	if asked := m.TakeEffects(); len(asked) != 1 || asked[0].ID != "a" {
		t.Errorf("%v", asked)
	}
	expect(Mail{})
	m.End(failed)
	expect(Mail{Ended: true, Err: failed})
	if err := m.AwaitEnd(); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// Once a mailbox is closed, no effect is begun: neither one that waits nor a later one.
func TestAClosedMailboxRefusesEffects(t *testing.T) {
	m, answer := NewMailbox(), make(chan error, 1)
	if err := m.declare(Waiting{answer: answer}); err != nil {
		t.Error(err)
	}
	m.Close(ErrOvertaken)
	if err := <-answer; !errors.Is(err, ErrOvertaken) || !m.Overtaken() {
		t.Errorf("the effect that waits gets %v", err)
	}
	if err := m.declare(Waiting{answer: answer}); !errors.Is(err, ErrOvertaken) {
		t.Errorf("a later one gets %v", err)
	}
}
