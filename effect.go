package einmal

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/register"
)

// Recovery defines what an Effect calls, and how it continues if it is unknown whether the call was made, because the
// process crashed or the answer was lost. Create it with RecoverByKey, RecoverByName, RecoverByLookup or RecoverByHand.
type Recovery[R any] struct {
	class record.Class
	name  string
	find  func(ctx context.Context, token string) (R, bool, error)
	do    func(ctx context.Context, intent record.Intent) (R, error)
}

// RecoverByKey returns the Recovery for a system that accepts a token with a call and does nothing when it gets the
// same token again: an idempotency key, a client token or a request id. The call is made again, with the same token,
// until it returns a result.
//
// The token is a UUID. It is stored with the intent, and it is not secret. For a creation or a deletion, it is computed
// from the object's uid and the ids of handler and effect. So it is the same even after the record was lost.
func RecoverByKey[R any](do func(ctx context.Context, token string) (R, error)) Recovery[R] {
	return recoverBy(record.Keyed, do, func(intent record.Intent) string { return intent.Token })
}

// RecoverByName returns the Recovery for a system in which the caller chooses a unique name for what is created. The
// call is made again, with the same name, until it returns a result. So do must treat "already exists" as success,
// after it has verified that what exists is its own.
//
// The name is stored with the intent, so do gets the stored name, even if a later release passes another one. The name
// is not secret.
func RecoverByName[R any](name string, do func(ctx context.Context, name string) (R, error)) Recovery[R] {
	made := recoverBy(record.Named, do, func(intent record.Intent) string { return intent.Name })
	made.name = name
	return made
}

// RecoverByLookup returns the Recovery for a system that can look up what was created: by the token, if the call can
// store it there as a tag or a comment, or by other properties. If the call may have been made before, find is called
// first:
//
//   - If find returns a value and true, that value is the result, and do is not called.
//   - If find returns false, do is called with the same token.
//   - If find returns an error, do is not called, and the handler is retried.
//
// Return false only if the system itself confirms that nothing exists. Another replica may be in the middle of the
// call, and some systems do not list new things at once. So the handler waits before it calls find: 30 seconds after a call
// of the same process has ended, otherwise until the intent is 30 seconds old. If a system needs longer to list what was
// created, the effect can happen twice.
func RecoverByLookup[R any](find func(ctx context.Context, token string) (R, bool, error), do func(ctx context.Context, token string) (R, error)) Recovery[R] {
	made := recoverBy(record.Findable, do, func(intent record.Intent) string { return intent.Token })
	if made.find = find; find == nil {
		made.do = nil
	}
	return made
}

// RecoverByHand returns the Recovery for a system that has no token, unique name or lookup. If the call may already
// have been made, it is not made again. Instead the handler fails permanently. The log, an event, and the condition
// EffectUndecided, if the status has conditions, name the object, the effect, the time, and an annotation. A person
// finds out what happened and answers with that annotation:
//
//	IDENTITY/effect.TOKEN: again              it was not made: call once more
//	IDENTITY/effect.TOKEN: done               it was made: the result is the zero value of R
//	IDENTITY/effect.TOKEN: '{"id":"a-17"}'    it was made: this is the result
//
// Each new answer triggers the handler again. An answer applies to one call only, because the next call has another
// token. An error of do also leaves it open whether something was made, unless the error comes from NotMade. A person
// is also asked before the first call, if the object has no record but an earlier process may have handled it.
func RecoverByHand[R any](do func(ctx context.Context) (R, error)) Recovery[R] {
	made := Recovery[R]{class: record.Stop}
	if do != nil {
		made.do = func(ctx context.Context, _ record.Intent) (R, error) { return do(ctx) }
	}
	return made
}

func recoverBy[R any](class record.Class, do func(context.Context, string) (R, error), known func(record.Intent) string) Recovery[R] {
	made := Recovery[R]{class: class}
	if do != nil {
		made.do = func(ctx context.Context, intent record.Intent) (R, error) { return do(ctx, known(intent)) }
	}
	return made
}

// Effect makes a call to an external system that must not be repeated, and returns its result.
//
//	account, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(ctx context.Context, token string) (Account, error) {
//		return bank.Open(ctx, c.Object.Name, token)
//	}))
//
// First Effect writes the intent into the object's record, and waits until the API server has stored it. Only then it
// makes the call. The result is recorded as that of a StepResult, and later attempts get it from the record. This costs
// one write more than a StepResult.
//
// If the intent cannot be stored, the call is not made. Return the error: the handler is retried. This happens if the
// API server is unavailable, if the object is gone or was replaced by another one with its name, or if another replica
// has handled it meanwhile or was elected.
//
// An intent without a result means that the call may have been made. The Recovery then decides: it calls again with the
// same token or name, looks up what exists, or asks a person. If a release changes the kind of Recovery while an intent
// has no result, a person is asked too, unless the new one is RecoverByLookup.
//
// The id and the result follow the rules of StepResult: the result must not be secret, and has at most 4 KiB. An Effect
// can be called within a Step and for the items of an Each. It fails in handlers that have no record: Reconcile, Timer,
// Daemon and OnEvent. That is a programming error, which this process does not retry. Set fields of Object from the
// result after Effect returns. Changes within the call are lost if the API server rejects them, because the call is not
// made again.
//
// Each creation, each change that an update handler handles, and each deletion has its own effects. A delete handler
// does not see the results of a create handler, so store in the status what it needs. Unlike steps, effects survive a
// permanent failure: those of a creation or a deletion until it succeeds, those of a change as long as the result is
// unknown. The annotation <identity>/recreate starts new effects.
func Effect[T, R any](ctx context.Context, c *Change[T], id string, recovery Recovery[R]) (R, error) {
	var result R
	of := part{name: id, room: record.ResultLimit + record.IntentSize(recovery.name), effect: true}
	if err := of.checkID(); err != nil {
		return result, err
	}
	if err := checkEffect(c, recovery); err != nil {
		return result, fmt.Errorf("%s: %w", of, err)
	}
	text, err := c.step(ctx, of, func(ctx context.Context) (stdjson.RawMessage, error) {
		if !c.driven { // A test calls the handler: it is the first call.
			given, err := recovery.do(ctx, record.Intent{Token: string(uuid.NewUUID()), Name: recovery.name})
			if err != nil {
				return nil, err
			}
			return register.ResultText(given, c.hides())
		}
		return recovery.make(ctx, c.steps, scopeOf(ctx).id)
	})
	if err != nil {
		return result, err
	}
	if err := stdjson.Unmarshal(text, &result); err != nil {
		return result, &invoke.ProgrammingError{Err: fmt.Errorf("%s: cannot read the recorded result as %T; an earlier release may have written it, so change the type "+
			"until it can be read; with another id the effect would happen twice: %w", of, result, err)}
	}
	return result, nil
}

// NotMade wraps the error of an Effect's call that certainly had no effect: the system refused the call, or was never
// reached. The intent is withdrawn, and err is handled as in any handler: see RetryAfter and Permanent. Do not use it
// for a timeout or a lost answer. NotMade(nil) is an error too.
func NotMade(err error) error {
	if err == nil {
		err = errors.New("nothing was made, no reason given")
	}
	return &notMadeError{err}
}

// notMadeError is an error that certainly had no effect.
type notMadeError struct{ error }

// Unwrap returns the wrapped error.
func (e *notMadeError) Unwrap() error { return e.error }

func checkEffect[T, R any](c *Change[T], recovery Recovery[R]) error {
	if recovery.do == nil {
		return &invoke.ProgrammingError{Err: errors.New(
			"recovery is missing or has a nil function: use RecoverByKey, RecoverByName, RecoverByLookup or RecoverByHand")}
	}
	if recovery.class == record.Named && (recovery.name == "" || len(recovery.name) > longestName) {
		return fmt.Errorf("name must have 1 to %d bytes, got %q", longestName, recovery.name)
	}
	if c.steps == nil && c.driven {
		return nil // Change.step returns the error.
	}
	if err := register.CheckResult(reflect.TypeFor[R](), c.hides()); err != nil {
		return &invoke.ProgrammingError{Err: err}
	}
	return nil
}

// longestName is the maximum length of a name that is recorded.
const longestName = 1024

// make runs an effect, or recovers from an earlier attempt.
func (r Recovery[R]) make(ctx context.Context, steps *attempt.Steps, id string) (stdjson.RawMessage, error) {
	found := steps.Effect(id)
	move := found.Next(r.class)
	switch {
	case move.Wait > 0:
		return nil, RetryAfter(move.Wait, nil)
	case move.Take:
		return r.said(found.Word, steps, id)
	case move.Ask && found.Word != "":
		return nil, Permanent(fmt.Errorf("unknown annotation value %.40q; %s", found.Word, steps.Ask(id, r.class)))
	case move.Ask:
		return nil, Permanent(errors.New(steps.Ask(id, r.class)))
	}
	intent := found.Intent
	if move.Declare {
		declared, err := steps.Declare(ctx, id, r.class, r.name, move.NewToken)
		if err != nil {
			return nil, err
		}
		intent = &declared
	}
	if move.Look {
		given, there, err := r.find(ctx, intent.Token)
		if err != nil {
			return nil, fmt.Errorf("look up the result of an earlier call: %w", err)
		}
		if there {
			return register.ResultText(given, steps.Hides)
		}
	}
	return r.call(ctx, steps, id, *intent)
}

// call makes the call. Its intent is already stored.
func (r Recovery[R]) call(ctx context.Context, steps *attempt.Steps, id string, intent record.Intent) (stdjson.RawMessage, error) {
	given, err := r.do(ctx, intent)
	if _, is := errors.AsType[*notMadeError](err); is {
		steps.Withdraw(id)
		return nil, err
	}
	var text stdjson.RawMessage
	if err == nil {
		text, err = register.ResultText(given, steps.Hides)
	}
	if err != nil {
		steps.Called(intent) // mutant: wait-from-the-intent
	}
	if err != nil && r.class == record.Stop {
		err = Permanent(fmt.Errorf("%w; %s", err, steps.Ask(id, r.class)))
	}
	return text, err
}

// said returns the result that a person has set in the annotation.
func (r Recovery[R]) said(word string, steps *attempt.Steps, id string) (stdjson.RawMessage, error) {
	var given R
	if word != record.WordDone {
		decoder := stdjson.NewDecoder(bytes.NewBufferString(word))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&given); err != nil {
			return nil, Permanent(fmt.Errorf("read the annotation as a result of type %T: %w; %s", given, err, steps.Ask(id, r.class)))
		}
	}
	text, err := register.ResultText(given, steps.Hides)
	if err != nil {
		return nil, Permanent(fmt.Errorf("result from the annotation: %w; %s", err, steps.Ask(id, r.class)))
	}
	return text, nil
}
