package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/report"
)

// LeastCleanup is what cleanup handlers get when others have used up the grace period.
const LeastCleanup = 2 * time.Second

// startUp calls the startup handlers, one after the other. It is false when the context has ended before they were done.
func startUp(ctx context.Context, activities []declaration.Activity, settings declaration.Settings) (bool, error) {
	for _, activity := range activities {
		if done, err := startOne(ctx, activity, settings); !done || err != nil {
			return false, err
		}
	}
	return ctx.Err() == nil, nil
}

// startOne calls one startup handler until it neither fails nor asks for another attempt.
func startOne(ctx context.Context, activity declaration.Activity, settings declaration.Settings) (bool, error) {
	log := settings.Log.With("handler", activity.ID)
	for ctx.Err() == nil {
		log.Info("startup handler invoked")
		err := invoke.Run(ctx, settings.AttemptTimeout, activity.Do)
		if err == nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // The operator stops: the handler has not failed.
		}
		verdict := invoke.Classify(err)
		err = report.WithText(err, redact.New().Text(err.Error()))
		if !verdict.Asked {
			return false, fmt.Errorf("startup handler %s: %w", activity.ID, err)
		}
		log.Warn("startup handler not done, will retry", "error", err, "retryIn", verdict.Delay.String())
		timer := time.NewTimer(verdict.Delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return false, nil
}

// cleanUp calls the cleanup handlers, one after the other, until a time. A failure is logged and does not stop the others.
func cleanUp(ctx context.Context, until time.Time, activities []declaration.Activity, settings declaration.Settings) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	for _, activity := range activities {
		log := settings.Log.With("handler", activity.ID)
		log.Info("cleanup handler invoked")
		if err := invoke.Run(ctx, settings.AttemptTimeout, activity.Do); err != nil {
			log.Error("cleanup handler failed", "error", redact.New().Text(err.Error()))
		}
	}
}

// cleanupTime returns a function that returns until when cleanup handlers may run: the end of the grace period, which starts when the
// context ends, but at least LeastCleanup from now.
func (o *Operator) cleanupTime(ctx context.Context) func() time.Time {
	asked := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { asked <- time.Now() })
	return func() time.Time {
		stopped := time.Now()
		select {
		case stopped = <-asked:
		default: // It ends by itself, or only just now.
		}
		until, least := stopped.Add(o.Settings.Grace), time.Now().Add(LeastCleanup)
		if until.Before(least) {
			return least
		}
		return until
	}
}

// Begun reports whether the startup handlers are done.
func (o *Operator) Begun() bool { return o.begun.Load() }
