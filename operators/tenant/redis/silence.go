package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/operators/tenant/breaker"
)

// guard is a client hook that makes commands fail immediately while their node does not answer. It surrounds the client's retries.
type guard struct{ breaker *breaker.Breaker }

// DialHook does not change dialing: the hooks of commands cover it.
func (guard) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook guards single commands.
func (g guard) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, command goredis.Cmder) error {
		err := breaker.Do(ctx, g.breaker, unanswered, func() error { return next(ctx, command) })
		if errors.Is(err, breaker.ErrOpen) {
			command.SetErr(err)
		}
		return err
	}
}

// ProcessPipelineHook guards pipelines and transactions.
func (g guard) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, commands []goredis.Cmder) error {
		err := breaker.Do(ctx, g.breaker, unanswered, func() error { return next(ctx, commands) })
		if errors.Is(err, breaker.ErrOpen) {
			for _, command := range commands {
				command.SetErr(err)
			}
		}
		return err
	}
}

// unanswered reports whether an error means that a node gave no answer.
func unanswered(err error) bool {
	_, kind := classify(err)
	return errors.Is(kind, ErrUnreachable) && !errors.Is(err, ErrVersion) && !errors.Is(err, goredis.Nil)
}
