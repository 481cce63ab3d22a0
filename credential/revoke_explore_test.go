package credential_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
	"github.com/einmal-operators/einmal/einmaltest"
)

// history is what happened to one credential, in order, in all processes of an operator: which generation was stored, set and published.
type history struct {
	mu     sync.Mutex
	stored int
	broken []string
}

// storing is a store that tells the history which generations it has.
type storing struct {
	credential.Store

	of *history
}

func (s storing) Read(ctx context.Context, name string, owner credential.Owner, from int) (credential.Found, error) {
	found, err := s.Store.Read(ctx, name, owner, from)
	if n := len(found.Records); err == nil && n > 0 {
		s.of.has(found.Records[n-1].Generation)
	}
	return found, err
}

func (s storing) Create(ctx context.Context, name string, owner credential.Owner, record credential.Record) error {
	err := s.Store.Create(ctx, name, owner, record)
	if err == nil {
		s.of.has(record.Generation)
	}
	return err
}

func (h *history) has(generation int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stored = max(h.stored, generation)
}

// setting is a system that notes passwords that are set although a later one is stored.
type setting struct {
	credential.Rotator

	of *history
}

func (s setting) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	s.of.mu.Lock()
	if change.Generation < s.of.stored {
		s.of.broken = append(s.of.broken, "a password was set although a later one was stored")
	}
	s.of.mu.Unlock()
	return s.Rotator.Set(ctx, owner, change)
}

// A crash before or after each step of a rotation in place, a lost answer, or a second replica: once the next password is stored, no older one is
// set, readers get it, and only it is accepted.
func TestWhateverGoesWrongARevokedPasswordIsNotSetAgain(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		seen := &history{}
		system := begun(w, func(op *einmal.Operator, system credential.System) { declareRevocation(op, system, seen) })
		w.Create(appOf("one"))
		w.Advance(10 * time.Minute)
		for i, request := range []string{"x", "y"} {
			before := published(w)
			w.Patch(appOf("one"), `{"spec":{"plan":"`+request+`"}}`)
			w.Advance(10 * time.Minute)
			if now := published(w); now.Generation != i+2 || system.Accepts(before) || !system.Accepts(now) {
				w.Errorf("after %s generation %d is published; the one before is accepted: %t, this one: %t",
					request, now.Generation, system.Accepts(before), system.Accepts(now))
			}
		}
		w.Stop()
		if len(seen.broken) > 0 {
			w.Errorf("%s", strings.Join(seen.broken, "; "))
		}
	}, einmaltest.Schedules(150))
}

// declareRevocation declares an operator that rotates in place if the plan changes. All apps are revoked before one is converged.
func declareRevocation(op *einmal.Operator, system credential.System, seen *history) {
	rotator, ok := system.(credential.Rotator)
	if !ok {
		panic("the system rotates")
	}
	apps := einmal.For[app](op, einmal.GVK("example.com", "v1", "App"))
	apps.Reconcile("user", func(ctx context.Context, c *einmal.Change[app]) error {
		user := credential.User{Once: userOf(c), System: setting{rotator, seen}, InPlace: true}
		user.Request, user.Store = strings.TrimPrefix(c.Object.Spec.Plan, "small"), storing{user.Store, seen}
		err := user.Revoke(ctx)
		_, failed := user.Converge(ctx)
		return errors.Join(err, failed)
	})
}

// A process that read the store before a revocation, and was frozen until after it, does not set the password that was revoked.
func TestAFrozenProcessSetsNoRevokedPassword(t *testing.T) {
	t.Parallel()
	bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
		first := converged(t, user).Record
		frozen := credential.Assignment{Record: first}
		user.Request, user.InPlace = "leaked", true
		second := converged(t, user).Record
		if err := user.System.Set(t.Context(), user.Owner, frozen); !errors.Is(err, credential.ErrSuperseded) {
			t.Errorf("the frozen process: %v", err)
		}
		letsIn(t, system, "after that", map[credential.Record]bool{first: false, second: true})
	})
}
