// Package watch reports changed files, once after the changes have settled.
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

// quiet is how long no file must change before the changes count as settled.
const quiet = 300 * time.Millisecond

// Watcher watches the files in a set of directories.
type Watcher struct {
	notify *fsnotify.Watcher
	logf   func(format string, args ...any)

	mu       sync.Mutex
	relevant func(file string) bool
}

// New returns a watcher that watches no files yet. It reports failures of Run to logf.
func New(logf func(format string, args ...any)) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("create file watcher: %w", err)
	}
	return &Watcher{notify: notify, logf: logf}, nil
}

// Watch adds directories to the watched ones. Directories that are created in them are watched as well. From now on, only
// relevant files are reported.
func (w *Watcher) Watch(dirs []string, relevant func(file string) bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relevant = relevant
	for _, dir := range dirs {
		// Add it even if it is already watched: it may have been removed and re-created in the meantime.
		if err := w.notify.Add(dir); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
	}
	return nil
}

// Run sends the names of changed files, sorted, to changed until ctx is done. While the receiver is busy, further changes
// are added to the pending report.
func (w *Watcher) Run(ctx context.Context, changed chan<- []string) {
	defer func() { _ = w.notify.Close() }()
	files := make(chan string)
	var settling sync.WaitGroup
	defer settling.Wait()
	settling.Go(func() { Settle(ctx, files, changed) })
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-w.notify.Errors:
			w.logf("watch files: %v", err)
		case event := <-w.notify.Events:
			if !w.accept(event) {
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

// accept reports whether an event is a change of a relevant file. It starts to watch new directories.
func (w *Watcher) accept(event fsnotify.Event) bool {
	if event.Op == fsnotify.Chmod {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.relevant(event.Name) {
		return false
	}
	if event.Has(fsnotify.Create) {
		w.follow(event.Name)
	}
	return true
}

// follow watches a new directory and all directories below it, for which there may have been no events.
func (w *Watcher) follow(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = w.notify.Add(path)
		}
		return nil // ignore directories that are already gone
	})
}

// Settle collects names from in and sends them to out, without duplicates, when no name has arrived for the quiet period.
func Settle(ctx context.Context, in <-chan string, out chan<- []string) {
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
