// Package load changes many objects as users would, and waits until an operator has seen to each of them.
package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/bench/gadget"
	"github.com/einmal-operators/einmal/bench/internal/cluster"
)

// senders is how many requests are under way at the same time.
const senders = 16

// Load is the load of one kind in one namespace. Make it with New.
type Load struct {
	of        *cluster.Cluster
	kind      cluster.Kind
	namespace string
	size      int64
	failed    chan error

	// mu guards pending.
	mu      sync.Mutex
	pending map[string]*pending
}

// pending is an object that has been changed.
type pending struct {
	begun time.Time
	done  func(event) bool
	seen  chan time.Duration
}

// event is what a watch tells of an object.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Name       string   `json:"name"`
			Finalizers []string `json:"finalizers"`
			Version    string   `json:"resourceVersion"`
		} `json:"metadata"`
		Status gadget.Status `json:"status"`
		// Message is that of an error.
		Message string `json:"message"`
	} `json:"object"`
}

// New begins to watch the objects of a kind until the context ends.
func New(ctx context.Context, of *cluster.Cluster, kind cluster.Kind) (*Load, error) {
	l := &Load{of: of, kind: kind, namespace: "default", failed: make(chan error, 1), pending: map[string]*pending{}}
	listed, err := of.API.Get().AbsPath(kind.Path(l.namespace)).Param("limit", "1").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Resource(), err)
	}
	var list struct {
		Metadata struct {
			Version string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(listed, &list); err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.Resource(), err)
	}
	go func() { l.failed <- l.follow(ctx, list.Metadata.Version) }()
	return l, nil
}

// follow watches the objects from a version on. The API server may end a watch at any time, so another one goes on where it ended.
func (l *Load) follow(ctx context.Context, version string) error {
	for {
		stream, err := l.of.API.Get().AbsPath(l.kind.Path(l.namespace)).Param("watch", "1").Param("resourceVersion", version).Stream(ctx)
		if err != nil {
			return fmt.Errorf("watch %s: %w", l.kind.Resource(), err)
		}
		version, err = l.read(stream, version)
		_ = stream.Close()
		if err != nil {
			return fmt.Errorf("watch %s: %w", l.kind.Resource(), err)
		}
	}
}

// read reads the events of a watch until the API server ends it. It returns the version of the last one.
func (l *Load) read(stream io.Reader, version string) (string, error) {
	for events := json.NewDecoder(stream); ; {
		var next event
		switch err := events.Decode(&next); {
		case errors.Is(err, io.EOF):
			return version, nil
		case err != nil:
			return version, err
		}
		if next.Type == "ERROR" {
			return version, errors.New(next.Object.Message)
		}
		version = next.Object.Metadata.Version
		l.see(next)
	}
}

// see notes that an operator has seen to an object.
func (l *Load) see(next event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := next.Object.Metadata.Name
	if one := l.pending[name]; one != nil && one.done(next) {
		delete(l.pending, name)
		one.seen <- time.Since(one.begun)
	}
}

// Result is what a load has brought.
type Result struct {
	// Requests is how many the load has sent itself.
	Requests int
	// Drain is from the first request until the operator has seen to the last object.
	Drain time.Duration
	// Latencies has for each object how long it took from the request until the operator had seen to it.
	Latencies []time.Duration
}

// Objects are those that a load is about. First is the number of the first one, from 0. Every is the time from one request to the next, or 0 for as
// fast as the API server answers.
type Objects struct {
	First, Count int
	Every        time.Duration
}

// Create creates objects.
func (l *Load) Create(ctx context.Context, of Objects) (Result, error) {
	l.size = 1
	return l.each(ctx, of, reported(l.size), func(ctx context.Context, name string) error {
		body, err := json.Marshal(map[string]any{
			"apiVersion": gadget.Group + "/" + gadget.Version, "kind": l.kind.Name,
			"metadata": map[string]any{"name": name, "labels": map[string]string{"app.kubernetes.io/name": name, "team": "payments"}},
			"spec":     gadget.Spec{Size: l.size, Text: "a few words that stand for the other fields of an object"},
		})
		if err != nil {
			return err
		}
		return l.of.API.Post().AbsPath(l.kind.Path(l.namespace)).Body(body).Do(ctx).Error()
	})
}

// Update changes the size of objects.
func (l *Load) Update(ctx context.Context, of Objects) (Result, error) {
	l.size++
	change := []byte(`{"spec":{"size":` + strconv.FormatInt(l.size, 10) + `}}`)
	return l.each(ctx, of, reported(l.size), func(ctx context.Context, name string) error {
		return l.of.API.Patch(types.MergePatchType).AbsPath(l.kind.Path(l.namespace), name).Body(change).Do(ctx).Error()
	})
}

// Delete deletes objects.
func (l *Load) Delete(ctx context.Context, of Objects) (Result, error) {
	gone := func(e event) bool { return e.Type == "DELETED" }
	return l.each(ctx, of, gone, func(ctx context.Context, name string) error {
		return l.of.API.Delete().AbsPath(l.kind.Path(l.namespace), name).Do(ctx).Error()
	})
}

// reported returns whether the operator has reported a size.
func reported(size int64) func(event) bool {
	return func(e event) bool {
		return e.Object.Status.Size == size && e.Object.Status.Phase == gadget.Ready && len(e.Object.Metadata.Finalizers) > 0
	}
}

// each sends a request for each object, and waits until the operator has seen to all of them.
func (l *Load) each(ctx context.Context, of Objects, done func(event) bool, send func(context.Context, string) error) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun, seen := time.Now(), make(chan time.Duration, of.Count)
	names := make(chan string)
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for name := range names {
				l.expect(name, &pending{begun: time.Now(), done: done, seen: seen})
				if err := send(ctx, name); err != nil {
					cancel(fmt.Errorf("object %s: %w", name, err))
				}
			}
		})
	}
	for i := range of.Count {
		Pause(ctx, time.Until(begun.Add(time.Duration(i)*of.Every)))
		names <- fmt.Sprintf("%s-%05d", l.kind.Resource(), of.First+i)
	}
	close(names)
	sending.Wait()
	result := Result{Requests: of.Count}
	for range of.Count {
		select {
		case latency := <-seen:
			result.Latencies = append(result.Latencies, latency)
		case err := <-l.failed:
			return Result{}, err
		case <-ctx.Done():
			return Result{}, errors.Join(fmt.Errorf("%d of %d objects are done", len(result.Latencies), of.Count), context.Cause(ctx))
		}
	}
	result.Drain = time.Since(begun)
	return result, nil
}

// Pause waits, if there is something to wait for, and no longer than the context.
func Pause(ctx context.Context, long time.Duration) {
	if long <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}

func (l *Load) expect(name string, one *pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending[name] = one
}
