package kindloop

import (
	"context"
	"errors"
	"time"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// How often a kind is looked for that is not served, or whose schema is about to be published. After soonFor, it is looked for as others.
const (
	Every   = time.Second
	soon    = Every / 10
	soonFor = 5 * time.Second
)

// Loop serves one kind as long as the API server does. All functions are called by the goroutine of Run.
type Loop struct {
	// Find finds the kind, and begins what can fail because the kind is not served. It is called again after an error: see Every.
	Find func(ctx context.Context) (kube.Description, error)
	// Waiting is called after each failure of Find. News means that the error is not the one of the last call: it is to be logged.
	Waiting func(err error, news bool)
	// Serve does what is to be done for the kind until its context ends, which it does when the kind vanishes. An error ends Run. Without an error, and as
	// long as the context of Run has not ended, the kind counts as vanished.
	Serve func(ctx context.Context, found kube.Description) error
	// Vanished is called after Serve, before the kind is looked for again. An error ends Run.
	Vanished func(ctx context.Context, found kube.Description) error
	// Served returns kube.ErrNotServed if the kind is not served. It is asked when Informers tell of a failed watch. Nil means that the kind does not vanish.
	Served    func(ctx context.Context) error
	Informers *Informers
}

// Run serves the kind until the context ends. It returns nil then, and else the error of Serve or Vanished.
func (l Loop) Run(ctx context.Context) error {
	for {
		found, ok := l.find(ctx)
		if !ok {
			return nil
		}
		err := l.serve(ctx, found)
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			return err
		case ctx.Err() != nil:
			return nil //nolint:nilerr // It was asked to end.
		}
		if err := l.Vanished(ctx, found); err != nil {
			return err
		}
	}
}

// find waits until the kind is found. It returns false if the context ends before.
func (l Loop) find(ctx context.Context) (found kube.Description, ok bool) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	last, quick := "", soonFor/soon
	for {
		found, err := l.Find(ctx)
		if err == nil {
			return found, true
		}
		if ctx.Err() != nil {
			return kube.Description{}, false
		}
		if errors.Is(err, kube.ErrNoSchema) && quick > 0 {
			quick--
			ticker.Reset(soon)
			l.Waiting(err, false)
		} else {
			ticker.Reset(Every)
			l.Waiting(err, last != err.Error())
			last = err.Error()
		}
		select {
		case <-ctx.Done():
			return kube.Description{}, false
		case <-ticker.C:
		}
	}
}

// serve serves the kind until it vanishes, or the context ends.
func (l Loop) serve(ctx context.Context, found kube.Description) error {
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if l.Served != nil && l.awaitVanishing(ctx) {
			cancel()
		}
	}()
	defer func() {
		cancel()
		<-watched
	}()
	return l.Serve(ctx, found)
}

// awaitVanishing returns true when the API server does not serve the kind any more, and false when the context ends before. It asks only when some watch has
// failed.
func (l Loop) awaitVanishing(ctx context.Context) bool {
	heard, end := l.Informers.Listen()
	defer end()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-heard:
		}
		if errors.Is(l.Served(ctx), kube.ErrNotServed) {
			return true
		}
	}
}
