package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnInterruptedAttemptDoesNotHideTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		refused := errors.New("the server refuses")
		attempts := 0
		err := succeed(ctx, func(ctx context.Context) error {
			if attempts++; attempts < 3 {
				return refused
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, refused) || attempts != 3 {
			t.Errorf("after %d attempts: %v", attempts, err)
		}
	})
}

func TestAnInterruptedAttemptIsReportedIfThereIsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := succeed(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it returns %v", err)
		}
	})
}
