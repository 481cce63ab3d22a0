package attempt

import (
	"errors"
	"sync"
)

// Mailbox is how an attempt in progress tells the reconciliation that has begun it what has happened. Make it with NewMailbox.
type Mailbox struct {
	// Arrived has an element after something was posted, until it is received.
	Arrived chan struct{}

	// mu guards the fields below, and those of the Steps that post here.
	mu sync.Mutex
	// stepped: a step has ended since it was taken last.
	stepped bool
	// effects wait for their intents to be stored. None is accepted any more once closed says why.
	effects []Waiting
	closed  error
	// ended: the attempt has ended, with this error.
	ended  bool
	result error
}

// NewMailbox returns an empty mailbox.
func NewMailbox() *Mailbox { return &Mailbox{Arrived: make(chan struct{}, 1)} }

// Mail is what has happened since it was taken last.
type Mail struct {
	// Stepped: a step has ended. Declared: effects wait for their intents to be stored.
	Stepped, Declared bool
	// Ended: the attempt has ended, with this error. Nothing comes after that.
	Ended bool
	Err   error
}

// Take returns what has happened since it was called last. Effects wait until TakeEffects is called.
func (m *Mailbox) Take() Mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := Mail{Stepped: m.stepped, Declared: len(m.effects) > 0, Ended: m.ended, Err: m.result}
	m.stepped = false
	return taken
}

// TakeEffects hands over the effects that wait.
func (m *Mailbox) TakeEffects() []Waiting {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.effects
	m.effects = nil
	return asked
}

// step posts that a step has ended. The lock is held.
func (m *Mailbox) step() {
	m.stepped = true
	m.notify()
}

// declare posts an effect that waits for its intent to be stored.
func (m *Mailbox) declare(effect Waiting) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed != nil {
		return m.closed
	}
	m.effects = append(m.effects, effect)
	m.notify()
	return nil
}

// End posts that the attempt has ended.
func (m *Mailbox) End(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended, m.result = true, err
	m.notify()
}

// Close lets no effect be declared any more.
func (m *Mailbox) Close(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = why
	for _, effect := range m.effects {
		effect.answer <- why
	}
	m.effects = nil
}

// AwaitEnd waits until the attempt has ended.
func (m *Mailbox) AwaitEnd() error {
	for {
		if taken := m.Take(); taken.Ended {
			return taken.Err
		}
		<-m.Arrived
	}
}

// Overtaken reports whether another process has handled the object meanwhile.
func (m *Mailbox) Overtaken() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Is(m.closed, ErrOvertaken)
}

// notify wakes the reconciliation. The lock is held.
func (m *Mailbox) notify() {
	select {
	case m.Arrived <- struct{}{}:
	default: // It is known already.
	}
}
