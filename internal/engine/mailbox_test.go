package engine

import (
	"errors"
	"testing"
)

// What an attempt posts is taken once, and its end stays known.
func TestAPassTakesWhatAnAttemptHasPosted(t *testing.T) {
	m, answer, failed := newMailbox(), make(chan error, 1), errors.New("failed")
	expect := func(want mail) {
		t.Helper()
		if got := m.take(); got != want {
			t.Errorf("it takes %+v, want %+v", got, want)
		}
	}
	expect(mail{})
	m.step()
	m.step()
	if err := m.declare(waiting{id: "a", answer: answer}); err != nil {
		t.Error(err)
	}
	<-m.arrived
	expect(mail{stepped: true, declared: true})
	expect(mail{declared: true}) // Until it is taken itself.
	if asked := m.takeEffects(); len(asked) != 1 || asked[0].id != "a" {
		t.Errorf("%v", asked)
	}
	expect(mail{})
	m.end(failed)
	expect(mail{ended: true, err: failed})
	if err := m.awaitEnd(); !errors.Is(err, failed) {
		t.Error(err)
	}
}

// Once a mailbox is closed, no effect is begun: neither one that waits nor a later one.
func TestAClosedMailboxRefusesEffects(t *testing.T) {
	m, answer := newMailbox(), make(chan error, 1)
	if err := m.declare(waiting{answer: answer}); err != nil {
		t.Error(err)
	}
	m.close(errOvertaken)
	if err := <-answer; !errors.Is(err, errOvertaken) || !m.overtaken() {
		t.Errorf("the effect that waits gets %v", err)
	}
	if err := m.declare(waiting{answer: answer}); !errors.Is(err, errOvertaken) {
		t.Errorf("a later one gets %v", err)
	}
}
