package engine

import (
	"fmt"
	"sync"
)

// readiness is what is in the way of each kind, by a name of the kind and of what it is watched for.
type readiness struct {
	// mu guards waiting, which is "" for nothing.
	mu      sync.Mutex
	waiting map[string]string
}

// report notes what is in the way of a kind, "" for nothing.
func (r *readiness) report(name, trouble string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[string]string{}
	}
	r.waiting[name] = trouble
}

// forget removes a kind.
func (r *readiness) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, name)
}

// of returns what is in the way of a kind, or nil.
func (r *readiness) of(kind, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	trouble, known := r.waiting[name]
	switch {
	case !known:
		return fmt.Errorf("%s: not started", kind)
	case trouble != "":
		return fmt.Errorf("%s: %s", kind, trouble)
	}
	return nil
}
