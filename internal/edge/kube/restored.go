package kube

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// RestoredError means that the API server has only older versions than those that were seen before: its etcd was restored from an older copy.
type RestoredError struct {
	// Newest is the newest version that the API server has, or "" if another watch has noticed the restore. Seen is the version that was seen before.
	Newest, Seen string
}

// Error says what the API server has.
func (e *RestoredError) Error() string {
	if e.Newest == "" {
		return fmt.Sprintf("the etcd of the API server was restored after version %s was seen", e.Seen)
	}
	return fmt.Sprintf("the API server has version %s and no newer one, although version %s was seen before", e.Newest, e.Seen)
}

// Status is that of a watch that has expired. An informer lists again then.
func (e *RestoredError) Status() metav1.Status {
	return apierrors.NewResourceExpired(e.Error()).Status()
}

// restores counts how often the etcd of the API server was restored, as far as the watches of a process have noticed.
type restores struct {
	mu    sync.Mutex
	count int
	// next is closed when the next one is noticed. It is nil before a watch waits for it.
	next chan struct{}
}

// now returns how many there were, and a channel that is closed at the next one.
func (r *restores) now() (count int, next <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = make(chan struct{})
	}
	return r.count, r.next
}

// note notes a restore after so many others. Several watches can notice the same one.
func (r *restores) note(after int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count != after {
		return
	}
	r.count++
	if r.next != nil {
		close(r.next)
		r.next = nil
	}
}

// restoreGuard lets an informer list again after etcd was restored from an older copy. The API server accepts a watch from a version that does not exist
// yet, and tells of nothing until it does: https://github.com/kubernetes/kubernetes/issues/107457. So the guard asks for the newest version whenever a watch
// begins again. It reads from etcd, so that no other API server can be behind. If one guard of a process notices a restore, all of them list again: their
// versions can be those of other objects by then.
type restoreGuard struct {
	from     toolscache.ListerWatcherWithContext
	restores *restores
	// newest lists one object.
	newest func(context.Context, metav1.ListOptions) (runtime.Object, error)
	// undecodable is called before an event is delivered that could not be decoded.
	undecodable func()

	mu sync.Mutex
	// listed is the version of a list after which no watch has begun yet, and known how many restores there were before the list.
	listed string
	known  int
}

func (g *restoreGuard) listWatch() toolscache.ListerWatcher {
	return &toolscache.ListWatch{ListWithContextFunc: g.list, WatchFuncWithContext: g.watch}
}

func (g *restoreGuard) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	known, _ := g.restores.now()
	found, err := g.from.ListWithContext(ctx, options)
	if err != nil {
		return nil, err //nolint:wrapcheck // client-go compares some errors by identity.
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listed, g.known = versionOf(found), known
	return found, nil
}

func (g *restoreGuard) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	count, next := g.restores.now()
	known, listed := g.lastList(options, count)
	if options.SendInitialEvents == nil && count > known {
		return nil, &RestoredError{Seen: options.ResourceVersion}
	}
	if options.SendInitialEvents == nil && options.ResourceVersion != "" && options.ResourceVersion != "0" && options.ResourceVersion != listed {
		switch err := g.check(ctx, options.ResourceVersion, known); {
		case net.IsProbableEOF(err) || net.IsTimeout(err): // client-go begins no watch either, and tries again. A list instead would miss events.
			return watch.NewEmptyWatch(), nil
		case err != nil:
			return nil, err
		}
	}
	begun, err := g.from.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err //nolint:wrapcheck // As above.
	}
	return relay(begun, g.undecodable, next), nil
}

// lastList returns how many restores there were before the last list, and its version if no watch has begun since. A watch that sends what there is is a list.
func (g *restoreGuard) lastList(options metav1.ListOptions, count int) (known int, listed string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if options.SendInitialEvents != nil {
		g.known = count
	}
	listed, g.listed = g.listed, ""
	return g.known, listed
}

// check returns an error if the API server has only older versions than one that was seen.
func (g *restoreGuard) check(ctx context.Context, seen string, known int) error {
	found, err := g.newest(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	newest := versionOf(found)
	if !isLower(newest, seen) { // mutant: restored-etcd-unnoticed
		return nil
	}
	g.restores.note(known)
	return &RestoredError{Newest: newest, Seen: seen}
}

// isLower reports whether a version is lower than another one. It is false for versions that cannot be compared, as those of some aggregated API servers.
func isLower(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// versionOf returns the resource version of a list, or "".
func versionOf(list runtime.Object) string {
	found, err := meta.ListAccessor(list)
	if err != nil {
		return ""
	}
	return found.GetResourceVersion()
}
