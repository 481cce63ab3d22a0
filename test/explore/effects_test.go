package explore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// bank is a system outside of the cluster that opens accounts. It outlives the operator.
type bank struct {
	mu sync.Mutex
	// marks are what the accounts that are open were opened with, in their order.
	marks []string
	// calls are how often one was to be opened, whatever came of it.
	calls int
}

// open opens an account.
func (b *bank) open(p *einmaltest.Process, mark string) (opened fixture.Account, err error) {
	return b.openUnless(p.Effect, mark, func() int { return 0 })
}

// openOnce opens an account if there is none with this mark.
func (b *bank) openOnce(p *einmaltest.Process, mark string) (opened fixture.Account, err error) {
	return b.openUnless(p.IdempotentEffect, mark, func() int { return slices.Index(b.marks, mark) + 1 })
}

// openUnless opens an account if there is none that is the one.
func (b *bank) openUnless(
	effect func(string, func() (any, error)) error, mark string, one func() int,
) (opened fixture.Account, err error) {
	err = effect("open an account", func() (any, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls++
		if opened.Number = one(); opened.Number == 0 {
			b.marks = append(b.marks, mark)
			opened.Number = len(b.marks)
		}
		return len(b.marks), nil
	})
	return opened, err
}

// find looks an account up, which changes nothing.
func (b *bank) find(mark string) (found fixture.Account, there bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.Index(b.marks, mark)
	return fixture.Account{Number: at + 1}, at >= 0, nil
}

// accounts is how many are open, and how often that was asked for.
func (b *bank) accounts() (open, calls int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.marks), b.calls
}

// recoveries are the classes, with a bank that offers what each needs and no more.
func recoveries(b *bank, p *einmaltest.Process) map[string]einmal.Recovery[fixture.Account] {
	return map[string]einmal.Recovery[fixture.Account]{
		"keyed": einmal.RecoverByKey(func(_ context.Context, token string) (fixture.Account, error) { return b.openOnce(p, token) }),
		"named": einmal.RecoverByName("acme", func(_ context.Context, name string) (fixture.Account, error) { return b.openOnce(p, name) }),
		"findable": einmal.RecoverByLookup(
			func(_ context.Context, token string) (fixture.Account, bool, error) { return b.find(token) },
			func(_ context.Context, token string) (fixture.Account, error) { return b.open(p, token) }),
		"stop":            einmal.RecoverByHand(func(context.Context) (fixture.Account, error) { return b.open(p, "") }),
		"keyed, unheeded": einmal.RecoverByKey(func(context.Context, string) (fixture.Account, error) { return b.openOnce(p, rand.Text()) }),
	}
}

// later follows the name of a class whose effect is made in the second attempt, so that there is a record that does not know the effect.
const later = ", later"

// inAccounts declares a creation that opens an account, takes its time, and says which one it is.
func inAccounts[T any](kind *einmal.Kind[T], of fixture.Accessors[T], class string, by func() einmal.Recovery[fixture.Account]) {
	kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[T]) error {
		if strings.HasSuffix(class, later) && c.Attempt == 1 {
			return einmal.RetryAfter(time.Minute, errors.New("the bank is closed"))
		}
		account, err := einmal.Effect(ctx, c, "account", by())
		if err != nil {
			return err
		}
		if err := fixture.Pause(ctx, 2*time.Second); err != nil {
			return err
		}
		of.SetPhase(c.Object, fmt.Sprintf("account %d", account.Number))
		return nil
	})
}

// tended plays the life of an object with an account, and a person who looks after it every six minutes.
func tended[T any](w *einmaltest.World, kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), one client.Object, class string) {
	outside := &bank{}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		declared, of := kind(op)
		inAccounts(declared, of, class, func() einmal.Recovery[fixture.Account] {
			return recoveries(outside, p)[strings.TrimSuffix(class, later)]
		})
		return op
	})
	w.Advance(time.Minute) // What is there at the start may have been handled before, and a person is asked.
	w.Create(one)
	again := 0
	for range 5 {
		w.Advance(6 * time.Minute)
		again += tend(w, one, outside)
	}
	open, calls := outside.accounts()
	if strings.HasPrefix(class, "stop") && calls > 1+again {
		w.Errorf("it was called %d times, and people have said %d times that nothing was made: want one call more at most", calls, again)
	}
	w.Outcome("accounts", open)
	w.Outcome("phase", fixture.Phase(w, one))
	w.Delete(one)
}

// tend is what a person does who is asked about an account: look what the bank has, and say it. It returns how often that
// was that nothing was made.
func tend(w *einmaltest.World, one client.Object, outside *bank) int {
	annotation := fixture.UndecidedEffect(w, one)
	if annotation == "" {
		return 0
	}
	word, again := "again", 1
	if open, _ := outside.accounts(); open > 0 {
		word, again = fmt.Sprintf(`{"number":%d}`, open), 0
	}
	fixture.Annotate(w, one, annotation, word)
	return again
}

func keyedWidget(w *einmaltest.World) { tended(w, fixture.Widgets, fixture.NewWidget("one"), "keyed") }

func namedGadget(w *einmaltest.World) {
	tended(w, fixture.Gadgets, fixture.NewGadget("one", 1), "named")
}

func findableWidget(w *einmaltest.World) {
	tended(w, fixture.Widgets, fixture.NewWidget("one"), "findable")
}

func stopWidget(w *einmaltest.World) { tended(w, fixture.Widgets, fixture.NewWidget("one"), "stop") }

func stopGadget(w *einmaltest.World) { tended(w, fixture.Gadgets, fixture.NewGadget("one", 1), "stop") }

func keyedLater(w *einmaltest.World) {
	tended(w, fixture.Widgets, fixture.NewWidget("one"), "keyed"+later)
}

func namedLater(w *einmaltest.World) {
	tended(w, fixture.Widgets, fixture.NewWidget("one"), "named"+later)
}

func findableLater(w *einmaltest.World) {
	tended(w, fixture.Widgets, fixture.NewWidget("one"), "findable"+later)
}

func stopLater(w *einmaltest.World) {
	tended(w, fixture.Widgets, fixture.NewWidget("one"), "stop"+later)
}

// With any fault at any time, exactly one account exists: for effects with a token or a name, for effects that can be looked up, and for effects
// whose result a user reports. The last are never made twice unless a user asks for it.
func TestWhateverGoesWrongAnEffectIsMadeOnce(t *testing.T) {
	// What has to do with neither the class nor where the record is kept is tried with the others.
	elsewhere := []einmaltest.Dimension{einmaltest.Clocks, einmaltest.Events, einmaltest.OtherWriters, einmaltest.Standby}
	t.Run("keyed", func(t *testing.T) { einmaltest.Explore(t, keyedWidget) })
	t.Run("named", func(t *testing.T) { einmaltest.Explore(t, namedGadget, einmaltest.Without(elsewhere...)) })
	t.Run("findable", func(t *testing.T) { einmaltest.Explore(t, findableWidget) })
	t.Run("stop, record in the status", func(t *testing.T) { einmaltest.Explore(t, stopWidget) })
	t.Run("stop, record in the annotation", func(t *testing.T) { einmaltest.Explore(t, stopGadget, einmaltest.Without(elsewhere...)) })
}

// A record from before the effect comes back, while the operator runs or is down.
func TestWhateverGoesWrongAnOlderRecordRepeatsNoEffect(t *testing.T) {
	older := einmaltest.Only(einmaltest.OlderRecords)
	t.Run("keyed", func(t *testing.T) { einmaltest.Explore(t, keyedLater, older) })
	t.Run("named", func(t *testing.T) { einmaltest.Explore(t, namedLater, older) })
	t.Run("findable", func(t *testing.T) { einmaltest.Explore(t, findableLater, older) })
	t.Run("stop", func(t *testing.T) { einmaltest.Explore(t, stopLater, older) })
}

// The negative control: the exploration finds a handler that makes a new token for each call.
func TestATokenThatIsNotKeptIsFound(t *testing.T) {
	found := einmaltest.Search(t, func(w *einmaltest.World) { tended(w, fixture.Widgets, fixture.NewWidget("one"), "keyed, unheeded") })
	if found == nil || !strings.Contains(found.String(), "accounts: the outcome differs") {
		t.Errorf("found %v", found)
	}
}
