package einmal

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"

	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/engine"
)

// Recovery says what an Effect calls, and how it goes on when a process has died, or an answer was lost, so that nobody knows
// whether the call has made anything. It is given by Keyed, Named, Findable or Stop, of which one has to be chosen.
type Recovery[R any] struct {
	class record.Class
	name  string
	find  func(ctx context.Context, token string) (R, bool, error)
	do    func(ctx context.Context, intent record.Intent) (R, error)
}

// Keyed is for a system that takes a token with a call, and makes nothing when it gets the same token again: an idempotency key,
// a client token, a request id. The call is made again with the same token until it gives a result.
//
// The token is a UUID. It is stored with the intent and is not secret. In a creation and in a deletion it follows from the
// object's uid and the ids of handler and effect, so it is the same even after the record was lost.
func Keyed[R any](do func(ctx context.Context, token string) (R, error)) Recovery[R] {
	return recoverBy(record.Keyed, do, func(intent record.Intent) string { return intent.Token })
}

// Named is for a system where we choose the name of what is made, and nothing is there twice under one name. The call is made
// again with the same name until it gives a result; so do takes "it exists already" for success, once it has made sure that what
// exists is its own. The name is stored with the intent: do is given that one, also by a later release that would choose another. It
// is not secret.
func Named[R any](name string, do func(ctx context.Context, name string) (R, error)) Recovery[R] {
	made := recoverBy(record.Named, do, func(intent record.Intent) string { return intent.Name })
	made.name = name
	return made
}

// Findable is for a system where what was made can be looked up, by the token if the call can leave it there, as a tag or a
// comment, else by what it means. Where the call may have been made before, find is called first. What it finds is the result, and
// do is not called; with false do is called, with the same token. An error of find says nothing: nothing is called, and the
// handler is tried again.
//
// False is to be the system's own word that there is nothing. Another replica may be at the call, and a system may not find at once
// what was made: so nothing is looked up before the intent is 30 seconds old; the handler waits. Where that is not enough it is made twice.
func Findable[R any](find func(ctx context.Context, token string) (R, bool, error), do func(ctx context.Context, token string) (R, error)) Recovery[R] {
	made := recoverBy(record.Findable, do, func(intent record.Intent) string { return intent.Token })
	if made.find = find; find == nil {
		made.do = nil
	}
	return made
}

// Stop is for a system that offers nothing of that: where a call may have been made already, nothing is called. The handler
// fails for good, and says in the log, in an event and in the condition EffectUndecided, if the status has conditions, which effect of
// which object it is about and since when. A person finds out, and says so by an annotation that is named there:
//
//	IDENTITY/effect.TOKEN: again              it was not made: it is called once more
//	IDENTITY/effect.TOKEN: done               it was made: the result is the zero value of R
//	IDENTITY/effect.TOKEN: '{"id":"a-17"}'    it was made, and this is the result
//
// The handler is called again for each new word. A word is about one call: the next one has another token. An error of do leaves it
// open too whether something was made, unless it is given by NotMade. Where an object is found without a record, and an earlier process
// may have handled it, a person is asked before the first call.
func Stop[R any](do func(ctx context.Context) (R, error)) Recovery[R] {
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

// Effect makes something outside of the cluster that must not be made twice, and gives its result.
//
//	account, err := einmal.Effect(ctx, c, "account", einmal.Keyed(func(ctx context.Context, token string) (Account, error) {
//		return bank.Open(ctx, c.Object.Name, token)
//	}))
//
// First the intent is written into the object's record, which costs one write more than a StepResult does, and Effect waits until
// the API server has stored it. Only then the call is made. Its result is recorded as that of a StepResult, and later attempts get it
// from there. If the intent cannot be written (the API server is away, the object is gone or is another one by that name, another
// replica has handled it meanwhile or leads now), nothing is called, and the handler is to return the error: it is tried again.
//
// Who finds an intent without a result does not know whether the call was made. Then the Recovery decides: it calls again with the
// same token or name, looks up what is there, or leaves it to a person. An Effect that changes to another class between two
// releases, while there is no result, is left to a person too, unless the new class is Findable.
//
// The id, the type of the result and all else are as those of a StepResult: the result is not secret and has at most 4 KiB, effects
// can be made within steps and by the items of an Each, and there are none where nothing is recorded. What comes of the
// result goes into Object after Effect, since what the call changes there is not made again when the API server refuses it.
//
// One is made for each handling of a cause: an object has one creation, a handler's next change begins anew, and the effects
// of a delete handler are its own, so write what that needs to find into the status. Other than steps, effects are
// remembered beyond a failure for good: those of a creation and of a deletion until it succeeds, those of a change as
// long as the result is not known. The annotation that has create handlers run once more begins anew.
func Effect[T, R any](ctx context.Context, c *Change[T], id string, recovery Recovery[R]) (R, error) {
	var result R
	of := part{name: id, room: record.ResultLimit + record.IntentSize(recovery.name), effect: true}
	if err := checkEffect(c, id, recovery); err != nil {
		return result, fmt.Errorf("%s: %w", of, err)
	}
	text, err := c.step(ctx, of, func(ctx context.Context) (stdjson.RawMessage, error) {
		return recovery.make(ctx, c.steps, scopeOf(ctx).id)
	})
	if err != nil {
		return result, err
	}
	if err := stdjson.Unmarshal(text, &result); err != nil {
		return result, Permanent(fmt.Errorf("%s: the result that is recorded, of an earlier release perhaps, cannot be read as %T: "+
			"let the type read it; with another id it would be made a second time: %w", of, result, err))
	}
	return result, nil
}

// NotMade says in an Effect that nothing was made, and nothing will be: the system has refused the call, or was not reached at
// all. Then the call is as if it had never been intended, and the error means what it means in a handler: see RetryAfter and
// Permanent. A timeout, or an answer that is lost, is no such case. NotMade(nil) is an error too.
func NotMade(err error) error {
	if err == nil {
		err = errors.New("nothing was made, without a reason given")
	}
	return &notMadeError{err}
}

// notMadeError is an error after which nothing was made.
type notMadeError struct{ error }

// Unwrap gives the failure.
func (e *notMadeError) Unwrap() error { return e.error }

func checkEffect[T, R any](c *Change[T], id string, recovery Recovery[R]) error {
	if err := checkID(id); err != nil {
		return err
	}
	if recovery.do == nil {
		return errors.New("it has no recovery, or one without a function: give it one of Keyed, Named, Findable and Stop, with what is to be called")
	}
	if recovery.class == record.Named && (recovery.name == "" || len(recovery.name) > longestName) {
		return fmt.Errorf("the name of what is made is %q: give 1 to %d bytes", recovery.name, longestName)
	}
	if c.steps == nil {
		return nil // A step says so.
	}
	return checkResult[R](c.steps.Hides)
}

// longestName is the longest name of a thing outside that is recorded.
const longestName = 1024

// make makes an effect, or does what its class is for.
func (r Recovery[R]) make(ctx context.Context, steps *engine.Steps, id string) (stdjson.RawMessage, error) {
	found := steps.Effect(id)
	move := found.Next(r.class)
	switch {
	case move.Wait > 0:
		return nil, RetryAfter(move.Wait, nil)
	case move.Take:
		return r.said(found.Word, steps, id)
	case move.Ask && found.Word != "":
		return nil, Permanent(fmt.Errorf("the annotation says %.40q, which is no word that is known; %s", found.Word, steps.Ask(id, r.class)))
	case move.Ask:
		return nil, Permanent(errors.New(steps.Ask(id, r.class)))
	}
	intent := found.Intent
	if move.Declare {
		declared, err := steps.Declare(ctx, id, r.class, r.name, move.Anew)
		if err != nil {
			return nil, err
		}
		intent = &declared
	}
	if move.Look {
		given, there, err := r.find(ctx, intent.Token)
		if err != nil {
			return nil, fmt.Errorf("look up what was made: %w", err)
		}
		if there {
			return resultText(given, steps.Hides)
		}
	}
	return r.call(ctx, steps, id, *intent)
}

// call makes the call, whose intent is stored.
func (r Recovery[R]) call(ctx context.Context, steps *engine.Steps, id string, intent record.Intent) (stdjson.RawMessage, error) {
	given, err := r.do(ctx, intent)
	if _, is := errors.AsType[*notMadeError](err); is {
		steps.Withdraw(id)
		return nil, err
	}
	var text stdjson.RawMessage
	if err == nil {
		text, err = resultText(given, steps.Hides)
	}
	if err != nil && r.class == record.Stop {
		err = Permanent(fmt.Errorf("%w; %s", err, steps.Ask(id, r.class)))
	}
	return text, err
}

// said is the result as a person has told it.
func (r Recovery[R]) said(word string, steps *engine.Steps, id string) (stdjson.RawMessage, error) {
	var given R
	if word != record.WordDone {
		decoder := stdjson.NewDecoder(bytes.NewBufferString(word))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&given); err != nil {
			return nil, Permanent(fmt.Errorf("what the annotation says is no result of type %T: %w; %s", given, err, steps.Ask(id, r.class)))
		}
	}
	text, err := resultText(given, steps.Hides)
	if err != nil {
		return nil, Permanent(fmt.Errorf("what the annotation says: %w; %s", err, steps.Ask(id, r.class)))
	}
	return text, nil
}
