package engine

import (
	"errors"
	"sync"
)

// mailbox is how an attempt in progress and its pass talk: the attempt posts what has happened, and the pass takes it. Make it with newMailbox.
type mailbox struct {
	// arrived has an element after something was posted, until it is received.
	arrived chan struct{}

	mu sync.Mutex
	// stepped: a step has ended since the pass has looked last.
	stepped bool
	// effects wait for their intents to be stored. None is accepted any more once closed says why.
	effects []waiting
	closed  error
	// ended: the attempt has ended, with this error.
	ended  bool
	result error
}

func newMailbox() *mailbox { return &mailbox{arrived: make(chan struct{}, 1)} }

// mail is what has happened since the pass has looked last.
type mail struct {
	// stepped: a step has ended. declared: effects wait for their intents to be stored.
	stepped, declared bool
	// ended: the attempt has ended, with this error. Nothing comes after that.
	ended bool
	err   error
}

// take returns what has happened since it was called last. Effects wait until takeEffects is called.
func (m *mailbox) take() mail {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := mail{stepped: m.stepped, declared: len(m.effects) > 0, ended: m.ended, err: m.result}
	m.stepped = false
	return taken
}

// takeEffects hands over the effects that wait.
func (m *mailbox) takeEffects() []waiting {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.effects
	m.effects = nil
	return asked
}

// step posts that a step has ended.
func (m *mailbox) step() {
	m.mu.Lock()
	m.stepped = true
	m.mu.Unlock()
	m.notify()
}

// declare posts an effect that waits for its intent to be stored.
func (m *mailbox) declare(effect waiting) error {
	m.mu.Lock()
	if m.closed != nil {
		defer m.mu.Unlock()
		return m.closed
	}
	m.effects = append(m.effects, effect)
	m.mu.Unlock()
	m.notify()
	return nil
}

// end posts that the attempt has ended.
func (m *mailbox) end(err error) {
	m.mu.Lock()
	m.ended, m.result = true, err
	m.mu.Unlock()
	m.notify()
}

// close lets no effect be declared any more.
func (m *mailbox) close(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = why
	for _, effect := range m.effects {
		effect.answer <- why
	}
	m.effects = nil
}

// awaitEnd waits until the attempt has ended.
func (m *mailbox) awaitEnd() error {
	for {
		if taken := m.take(); taken.ended {
			return taken.err
		}
		<-m.arrived
	}
}

// overtaken reports whether another process has handled the object meanwhile.
func (m *mailbox) overtaken() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Is(m.closed, errOvertaken)
}

func (m *mailbox) notify() {
	select {
	case m.arrived <- struct{}{}:
	default: // It is known already.
	}
}
