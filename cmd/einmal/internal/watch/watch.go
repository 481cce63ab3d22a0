// Package watch tells that files have changed: once, after the changes have settled.
package watch

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Quiet is how long nothing must have changed for changes to have settled.
const Quiet = 300 * time.Millisecond

// Watcher watches the files of some directories.
type Watcher struct {
	notify *fsnotify.Watcher
	say    func(format string, args ...any)

	mu     sync.Mutex
	wanted map[string]bool
	made   map[string]bool // directories that were made in those, and are watched for as long as they are there
	counts func(file string) bool
}

// New returns a watcher that watches nothing yet. What goes wrong later is told to say.
func New(say func(format string, args ...any)) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("start to watch files: %w", err)
	}
	return &Watcher{
		notify: notify, say: say, wanted: map[string]bool{}, made: map[string]bool{},
		counts: func(string) bool { return false },
	}, nil
}

// Watch watches these directories from now on, and no others but those that are made in them. Only files that count
// are reported.
func (w *Watcher) Watch(dirs []string, counts func(file string) bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := map[string]bool{}
	for _, dir := range dirs {
		wanted[dir] = true
		// Added again also when it was watched before: it may have been removed and made anew in the meantime.
		if err := w.notify.Add(dir); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
	}
	for dir := range w.wanted {
		if !wanted[dir] && !w.made[dir] {
			_ = w.notify.Remove(dir) // it may be gone
		}
	}
	w.wanted, w.counts = wanted, counts
	return nil
}

// Run reports the files that have changed, sorted, to changed until ctx ends. Changes that come while nobody takes
// the report are added to it.
func (w *Watcher) Run(ctx context.Context, changed chan<- []string) {
	files := make(chan string)
	done := make(chan struct{})
	go func() {
		defer close(done)
		Settle(ctx, Quiet, files, changed)
	}()
	defer func() { <-done }()
	defer func() { _ = w.notify.Close() }()
	for {
		select {
		case <-ctx.Done():
			return
		case err, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.say("watching files: %v", err)
		case event, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if !w.relevant(event) {
				continue
			}
			select {
			case files <- event.Name:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (w *Watcher) relevant(event fsnotify.Event) bool {
	if event.Op == fsnotify.Chmod {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.counts(event.Name) {
		return false
	}
	if event.Has(fsnotify.Create) {
		w.follow(event.Name)
	}
	return true
}

// follow watches a directory that was made, and all in it: what was made in it in the meantime was not reported.
func (w *Watcher) follow(made string) {
	_ = filepath.WalkDir(made, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && w.notify.Add(path) == nil {
			w.made[path] = true
		}
		return nil // it may be gone again
	})
}

// Settle gathers the names that come in and passes them on, each once, when none has come for the time of quiet.
func Settle(ctx context.Context, quiet time.Duration, in <-chan string, out chan<- []string) {
	pending := map[string]bool{}
	timer := time.NewTimer(quiet)
	timer.Stop()
	var send chan<- []string
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-in:
			pending[name] = true
			send = nil
			timer.Reset(quiet)
		case <-timer.C:
			send = out
		case send <- slices.Sorted(maps.Keys(pending)):
			pending, send = map[string]bool{}, nil
		}
	}
}
