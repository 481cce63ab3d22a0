package einmal

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/register"
)

// defaultConcurrency is how many items of an Each run at the same time.
const defaultConcurrency = 8

// Step runs one part of a handler and records its success. Later attempts for the same cause skip it, also in later
// processes. When the handler has succeeded or failed permanently, its steps are forgotten: the next cause runs all of
// them again.
//
//	if err := einmal.Step(ctx, c, "account", makeAccount); err != nil {
//		return err
//	}
//	return einmal.Step(ctx, c, "invite", sendInvitation)
//
// The id must be unique in the handler and the same in every release, and follows the rules of handler ids. A step can
// have steps of its own: call Step with the context that fn gets. Their ids need to be unique within the outer step
// only. The error of fn is returned with the id in front, and is handled as in any handler: see RetryAfter and
// Permanent.
//
// The success is saved together with what the handler writes in the end, also if the handler fails. If the handler runs
// for longer than half a second after the step, it is saved then. After a crash before that, the step runs again, so a
// second run must be harmless.
//
// What a step changes on Object is saved with the step. Later attempts find it in Object, unless another client has
// changed it since. If the API server rejects the change, the step does not count as done.
//
// A skipped step does not see changes of the object that were made after its success. They are not lost: after the
// handler has succeeded, update handlers get them as a change. An update handler then runs once more, with all of its
// steps. If such a change is reverted before that, the steps run again at once.
//
// Steps need a record, so Step fails in handlers of Reconcile, Timer, Daemon and OnEvent. Steps run one after another;
// to run them concurrently, see Each.
func Step[T any](ctx context.Context, c *Change[T], id string, fn func(ctx context.Context) error) error {
	of := part{name: id}
	if err := of.checkID(); err != nil {
		return err
	}
	_, err := c.step(ctx, of, func(ctx context.Context) (stdjson.RawMessage, error) { return nil, fn(ctx) })
	return err
}

// StepResult is a Step that returns a value for later use, such as the id of something that was created in another
// system. The value is recorded with the step, as JSON. The attempt that runs fn and later attempts return the same
// value, as it is read from the JSON.
//
//	type Account struct {
//		ID string `json:"id"`
//	}
//	account, err := einmal.StepResult(ctx, c, "account", makeAccount)
//
// Everyone who can read the object can read the record. So R must be a named struct type, and the result must not be
// secret. StepResult fails before it calls fn if R, or the type of a field, redacts itself in logs (slog.LogValuer,
// fmt.Formatter or fmt.GoStringer), or if a field is named like a secret. It fails after fn if a value looks like a
// secret. A result has at most 4 KiB of JSON.
//
// After a crash between fn and the write of its result, fn is called again. For calls that must not be repeated, use
// Effect.
func StepResult[T, R any](ctx context.Context, c *Change[T], id string, fn func(ctx context.Context) (R, error)) (R, error) {
	var result R
	of := part{name: id, room: record.ResultLimit}
	if err := of.checkID(); err != nil {
		return result, err
	}
	if c.steps != nil || !c.driven {
		if err := register.CheckResult(reflect.TypeFor[R](), c.hides()); err != nil {
			return result, &invoke.ProgrammingError{Err: fmt.Errorf("%s: %w", of, err)}
		}
	}
	text, err := c.step(ctx, of, func(ctx context.Context) (stdjson.RawMessage, error) {
		given, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return register.ResultText(given, c.hides())
	})
	if err != nil {
		return result, err
	}
	if err := stdjson.Unmarshal(text, &result); err != nil {
		return result, &invoke.ProgrammingError{Err: fmt.Errorf("%s: cannot read the recorded result as %T; an earlier release may have written it, so give the step "+
			"another id, and it runs again: %w", of, result, err)}
	}
	return result, nil
}

// part is a step or an effect of a handler.
type part struct {
	name string
	room int // the maximum size of its record, without the name
	// effect is true for an Effect.
	effect bool
}

// String names the part in errors.
func (p part) String() string {
	if p.effect {
		return fmt.Sprintf("effect %q", p.name)
	}
	return fmt.Sprintf("step %q", p.name)
}

// checkID returns an error if the name of the part cannot be recorded.
func (p part) checkID() error {
	if err := register.CheckID(p.name); err != nil {
		return &invoke.ProgrammingError{Err: fmt.Errorf("%s: %w", p, err)}
	}
	return nil
}

// remedy says what to do in a handler that has no record.
func (p part) remedy() string {
	if p.effect {
		return "call it in a handler of OnCreate, OnUpdate, OnDelete or OnResume"
	}
	return "call the function itself"
}

// Each runs fn as a step for each item, several items concurrently (see Concurrency). Items that are done are skipped.
// All other items are tried, even if some fail, and Each returns their errors joined. The handler is retried as long as
// one item can be retried: at the time that all such items have requested, or otherwise after the backoff.
//
//	err := einmal.Each(ctx, c, c.Object.Spec.Databases, databaseName, makeDatabase)
//
// The key identifies an item in the record. It must be unique among the items, not empty, at most 253 bytes, not
// secret, and the same in each attempt. Keys and step ids share one namespace. So if a handler has several Each, or
// steps with the same names, call each Each within a Step of its own. About a thousand items can be recorded: the limit
// for all steps of a handler is 32 KiB.
//
// Items must not change Object, because they run concurrently: change it after Each. Apart from that, an item behaves
// as a Step.
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

// longestKey is the maximum length of a key: that of the longest Kubernetes names.
const longestKey = 253

// keysOf returns the ids of the items' steps. Characters that separate step ids are escaped.
func keysOf[I any](items []I, key func(I) string) ([]string, error) {
	escape := strings.NewReplacer("~", "~0", record.StepMark, "~1")
	keys, first := make([]string, len(items)), make(map[string]int, len(items))
	for i, item := range items {
		name := key(item)
		if name == "" || len(name) > longestKey {
			return nil, fmt.Errorf("each: key of item %d must have 1 to %d bytes, got %q", i, longestKey, name)
		}
		if at, taken := first[name]; taken {
			return nil, fmt.Errorf("each: items %d and %d have the same key %q: give each item its own key", at, i, name)
		}
		first[name], keys[i] = i, escape.Replace(name)
	}
	return keys, nil
}

// partsOf joins the failures; it returns nil if there are none.
func partsOf(failed []error) error {
	parts := &invoke.PartsError{}
	ended := false
	for _, err := range failed {
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			if !ended { // One such error is enough for all items that did not start.
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

// scope says to which step a context belongs.
type scope struct {
	// id is the id of the step, "" outside of all steps.
	id string
	// items is true for an item of an Each. Items run concurrently, so they must not access the object.
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

// child returns the id of a step within the scope.
func (s scope) child(id string) string {
	if s.id == "" {
		return id
	}
	return s.id + record.StepMark + id
}

// step runs a step, or returns its recorded result.
func (c *Change[T]) step(ctx context.Context, of part, fn func(context.Context) (stdjson.RawMessage, error)) (stdjson.RawMessage, error) {
	if !c.driven { // A test calls the handler: nothing is recorded.
		return fn(ctx)
	}
	if c.steps == nil {
		return nil, &invoke.ProgrammingError{Err: fmt.Errorf("%s: handlers for the reason %s have no record: %s", of, c.Reason, of.remedy())}
	}
	outer := scopeOf(ctx)
	inner := scope{id: outer.child(of.name), items: outer.items}
	known, done, err := c.steps.Begin(inner.id, of.room)
	if err != nil {
		return nil, err
	}
	if done {
		c.Log.Debug("step skipped, already done", "step", inner.id)
		return known.Result, nil
	}
	defer c.steps.Release(inner.id)
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
	c.Log.Debug("step done", "step", inner.id)
	return result, nil
}

// hides returns a function that reports whether a text contains a recognised secret.
func (c *Change[T]) hides() func(string) bool {
	if c.steps == nil {
		return func(string) bool { return false }
	}
	return c.steps.Hides
}

// endStep records a step that has succeeded, with the handler's current version of the object.
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

// unchanged runs items, and fails if they change the object.
func (c *Change[T]) unchanged(ctx context.Context, items func(context.Context) error) error {
	outer := scopeOf(ctx)
	if c.steps == nil || outer.items {
		return items(ctx)
	}
	leave, err := c.steps.Enter(outer.id, outer.child(attempt.AllItems))
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
		err = errors.New("each: an item changed Object: items run concurrently, so change it after Each")
	}
	return errors.Join(failed, err)
}

func (c *Change[T]) concurrency() int {
	if c.steps == nil || c.steps.Concurrency() == 0 {
		return defaultConcurrency
	}
	return c.steps.Concurrency()
}

// detached returns a deep copy of decoded JSON. It is needed because an untyped object is its own body.
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
