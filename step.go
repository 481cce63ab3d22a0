package einmal

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/engine"
)

// defaultConcurrency is how many items of an Each run at the same time.
const defaultConcurrency = 8

// Step is a part of a handler. Once fn has succeeded it is not called again until this handling of this cause is finished:
// later attempts pass it by, also in later processes. When the handler has succeeded, or failed for good, its steps are
// forgotten, and the next cause begins anew: what was done at creation is not done at deletion.
//
//	if err := einmal.Step(ctx, c, "account", makeAccount); err != nil {
//		return err
//	}
//	return einmal.Step(ctx, c, "invite", sendInvitation)
//
// The id is unique in the handler, made as a handler's id is, and the same in every release. A step can have steps itself,
// with the context that fn is given; their ids are within its own. The error of fn comes back with the id in front, and
// means what it means in a handler: see RetryAfter and Permanent.
//
// A step is written down with what its handler writes in the end, also if that fails; if the handler goes on for longer than half
// a second after it, then at that time. A crash before that runs it again, so a second run must do no harm.
//
// What a step changes on Object is written with the step: who is called again finds it in Object, as far as nobody else has
// changed it since. Where the API server refuses the change, the step is not done.
//
// A step that is passed by does not see what somebody has changed since it was done. That is not lost: when the handler
// has succeeded, update handlers see it as a change, and an update handler runs once more for it, with all its steps. Where the
// change is taken back before that, the steps are made again at once.
//
// Steps are for handlers of which something is recorded: in those of Reconcile and OnEvent a Step fails. They are made one
// after the other; see Each for what is to be done at the same time.
func Step[T any](ctx context.Context, c *Change[T], id string, fn func(ctx context.Context) error) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("step %q: %w", id, err)
	}
	_, err := c.step(ctx, part{name: id}, func(ctx context.Context) (stdjson.RawMessage, error) { return nil, fn(ctx) })
	return err
}

// StepResult is a Step that gives something which later attempts need, such as the name under which another system knows
// what was made there. It is recorded with the step, as JSON, and read back from there, so what comes back is the same in the
// attempt that has made it and in later ones.
//
//	type Account struct {
//		ID string `json:"id"`
//	}
//	account, err := einmal.StepResult(ctx, c, "account", makeAccount)
//
// Everyone who can read the object can read the record. So a result is a struct type with a name, whose fields tell what they
// are, and it must not be secret: a type that hides itself from logs (slog.LogValuer, fmt.Formatter or fmt.GoStringer), or
// has a field of such a type, or one that is named like a secret, is refused before fn is called; a value that looks like
// a secret is refused after that. A result has at most 4 KiB.
//
// A crash between fn and the record of what it gave calls fn again. What must not be made twice outside of the cluster is for
// Effect.
func StepResult[T, R any](ctx context.Context, c *Change[T], id string, fn func(ctx context.Context) (R, error)) (R, error) {
	var result R
	if err := checkID(id); err != nil {
		return result, fmt.Errorf("step %q: %w", id, err)
	}
	if c.steps != nil {
		if err := checkResult[R](c.steps.Hides); err != nil {
			return result, fmt.Errorf("step %q: %w", id, err)
		}
	}
	text, err := c.step(ctx, part{name: id, room: record.ResultLimit}, func(ctx context.Context) (stdjson.RawMessage, error) {
		given, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return resultText(given, c.steps.Hides)
	})
	if err != nil {
		return result, err
	}
	if err := stdjson.Unmarshal(text, &result); err != nil {
		return result, fmt.Errorf("step %q: the result that is recorded, of an earlier release perhaps, cannot be read as %T: "+
			"give the step another id, and it is done again: %w", id, result, err)
	}
	return result, nil
}

// part is a part of a handler, by its name. Room is how large what is remembered of it may become, beside its name.
type part struct {
	name string
	room int
	// effect tells that it is one outside of the cluster.
	effect bool
}

// String names it in errors.
func (p part) String() string {
	if p.effect {
		return fmt.Sprintf("effect %q", p.name)
	}
	return fmt.Sprintf("step %q", p.name)
}

// remedy is what to do where nothing is recorded.
func (p part) remedy() string {
	if p.effect {
		return "do it in a handler of OnCreate, OnUpdate, OnDelete or OnResume"
	}
	return "call the function itself"
}

// Each makes a step of each item: fn is called for those that are not done yet, several at the same time (see Concurrency).
// All are tried, whatever becomes of the others, and what went wrong comes back joined: as long as one item has something
// left to try, the handler is tried again, at the time that all such items have named, or else after its back-off.
//
//	err := einmal.Each(ctx, c, c.Object.Spec.Databases, databaseName, makeDatabase)
//
// The key of an item is what it is remembered by: not empty, at most 253 bytes, not secret, and the same in each attempt.
// No two items have the same. Keys and ids of steps are alike, so an Each beside another, or beside steps with such ids, is best put
// into a Step of its own. About a thousand items can be remembered: 32 KiB for all steps of a handler.
//
// Items must not change Object, since they run at the same time; change it after Each. In all else an item is as a Step.
func Each[T, I any](ctx context.Context, c *Change[T], items []I, key func(I) string, fn func(ctx context.Context, item I) error) error {
	keys, err := keysOf(items, key)
	if err != nil {
		return err
	}
	return c.unchanged(ctx, func(ctx context.Context) error {
		failed := make([]error, len(items))
		slots := make(chan struct{}, c.concurrency())
		var running sync.WaitGroup
		for i, item := range items {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				if failed[i] = ctx.Err(); failed[i] != nil {
					return
				}
				_, failed[i] = c.step(ctx, part{name: keys[i]}, func(ctx context.Context) (stdjson.RawMessage, error) {
					return nil, invoke.Guard(func() error { return fn(ctx, item) })
				})
			})
		}
		running.Wait()
		return partsOf(failed)
	})
}

// longestKey is the longest name that there is in Kubernetes.
const longestKey = 253

// keysOf are the ids of the items' steps: keys without what stands between the ids of steps.
func keysOf[I any](items []I, key func(I) string) ([]string, error) {
	escape := strings.NewReplacer("~", "~0", record.StepMark, "~1")
	keys, first := make([]string, len(items)), make(map[string]int, len(items))
	for i, item := range items {
		name := key(item)
		if name == "" || len(name) > longestKey {
			return nil, fmt.Errorf("each: item %d has the key %q: give 1 to %d bytes", i, name, longestKey)
		}
		if at, taken := first[name]; taken {
			return nil, fmt.Errorf("each: the items %d and %d have the same key %q: what is done is remembered by the key, so give each its own", at, i, name)
		}
		first[name], keys[i] = i, escape.Replace(name)
	}
	return keys, nil
}

// partsOf are the failures as one error; nil if there are none.
func partsOf(failed []error) error {
	parts := &invoke.PartsError{}
	ended := false
	for _, err := range failed {
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			if !ended { // It says the same of all that it has kept from beginning.
				parts.Parts, ended = append(parts.Parts, err), true
			}
		default:
			parts.Parts = append(parts.Parts, err)
		}
	}
	if len(parts.Parts) == 0 {
		return nil
	}
	return parts
}

// scope is which step a context belongs to.
type scope struct {
	// id is the step's, "" outside of all.
	id string
	// items tells that it runs beside others, so that nobody may look at the object.
	items bool
}

type scopeKey struct{}

func scopeOf(ctx context.Context) scope {
	found, _ := ctx.Value(scopeKey{}).(scope)
	return found
}

func (s scope) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// child is the id of a step within the scope.
func (s scope) child(id string) string {
	if s.id == "" {
		return id
	}
	return s.id + record.StepMark + id
}

// step makes a step, or gives what it gave when it was made.
func (c *Change[T]) step(ctx context.Context, of part, fn func(context.Context) (stdjson.RawMessage, error)) (stdjson.RawMessage, error) {
	if c.steps == nil {
		return nil, fmt.Errorf("%s: nothing is recorded of a handler of %s, so nothing can be remembered of its steps: %s", of, c.Reason, of.remedy())
	}
	outer := scopeOf(ctx)
	inner := scope{id: outer.child(of.name), items: outer.items}
	known, done, err := c.steps.Begin(inner.id, of.room)
	if err != nil {
		return nil, err
	}
	if done {
		c.Log.Debug("the step is done already", "step", inner.id)
		return known.Result, nil
	}
	if !outer.items {
		leave, err := c.steps.Enter(outer.id, inner.id)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	result, err := fn(inner.within(ctx))
	if err == nil {
		err = c.endStep(inner, result)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of, err)
	}
	c.Log.Debug("the step is done", "step", inner.id)
	return result, nil
}

// endStep remembers a step that has succeeded, with what is left of the object then.
func (c *Change[T]) endStep(at scope, result stdjson.RawMessage) error {
	var left object.Body
	if !at.items {
		now, err := c.left()
		if err != nil {
			return err
		}
		left = detached(now).(object.Body)
	}
	return c.steps.End(at.id, record.Step{Result: result}, c.is, left)
}

// unchanged runs items, which must leave the object as it is.
func (c *Change[T]) unchanged(ctx context.Context, items func(context.Context) error) error {
	outer := scopeOf(ctx)
	if c.steps == nil || outer.items {
		return items(ctx)
	}
	leave, err := c.steps.Enter(outer.id, outer.child(engine.AllItems))
	if err != nil {
		return err
	}
	defer leave()
	before, err := c.left()
	if err != nil {
		return err
	}
	before = detached(before).(object.Body)
	failed := items(scope{id: outer.id, items: true}.within(ctx))
	after, err := c.left()
	if err == nil && !object.Equal(before, after) {
		err = errors.New("each: an item has changed Object: items run at the same time, so change it after Each")
	}
	return errors.Join(failed, err)
}

func (c *Change[T]) concurrency() int {
	if c.steps == nil || c.steps.Concurrency == 0 {
		return defaultConcurrency
	}
	return c.steps.Concurrency
}

// detached is a copy of decoded JSON that shares no map and no list with it: an untyped object is its own body.
func detached(value any) any {
	switch value := value.(type) {
	case object.Body:
		copied := make(object.Body, len(value))
		for key, child := range value {
			copied[key] = detached(child)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, child := range value {
			copied[i] = detached(child)
		}
		return copied
	default:
		return value
	}
}
