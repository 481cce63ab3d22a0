package store

import "sync"

// Watcher is a queue of changes without a limit: writers never wait for readers.
type Watcher struct {
	store    *Store
	resource string
	wake     chan struct{}

	mu    sync.Mutex
	queue []Change
	ended bool
	err   error
}

// Wake delivers when there may be something to take.
func (w *Watcher) Wake() <-chan struct{} { return w.wake }

// Take empties the queue. With the last changes it tells that the watch has ended, and why: nil for no special reason.
func (w *Watcher) Take() (changes []Change, ended bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changes, w.queue = w.queue, nil
	return changes, w.ended, w.err
}

// Stop makes the store forget the watcher.
func (w *Watcher) Stop() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	delete(w.store.watchers, w)
}

func (w *Watcher) push(change Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, change)
	w.signal()
}

func (w *Watcher) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended, w.err = true, err
	w.signal()
}

func (w *Watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Waiting reports whether there is something to take.
func (w *Watcher) Waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) > 0
}
