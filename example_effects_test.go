package einmal_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// provider is a system outside of the cluster, and how it can be called without making something twice.
type provider interface {
	// OpenAccount opens no second account for the same token.
	OpenAccount(ctx context.Context, token string) (number int, err error)
	// CreateBucket returns errExists if a bucket with that name exists, and reports whether it is the caller's own.
	CreateBucket(ctx context.Context, name string) (ours bool, err error)
	// FindLine looks for a line with this tag. RentLine rents one with it, and another each time.
	FindLine(ctx context.Context, tag string) (number int, found bool, err error)
	RentLine(ctx context.Context, tag string) (number int, err error)
	// SendInvoice sends an invoice, and another each time.
	SendInvoice(ctx context.Context) (number int, err error)
}

// Bucket is what an effect gives.
type Bucket struct {
	Name string `json:"name"`
}

var errExists = errors.New("it exists already")

// Four effects outside of the cluster, of which none must be made twice, each with what its system offers for that.
func ExampleEffect() {
	var outside provider
	make := func(ctx context.Context, c *einmal.Change[Widget]) error {
		account, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(ctx context.Context, token string) (Account, error) {
			number, err := outside.OpenAccount(ctx, token) // The same token each time: an idempotency key.
			return Account{Number: number}, err
		}))
		if err != nil {
			return err
		}
		_, err = einmal.Effect(ctx, c, "bucket", einmal.RecoverByName(string(c.Object.UID), func(ctx context.Context, name string) (Bucket, error) {
			ours, err := outside.CreateBucket(ctx, name)
			if errors.Is(err, errExists) && ours {
				err = nil // An earlier call has made it.
			}
			return Bucket{Name: name}, err
		}))
		if err != nil {
			return err
		}
		find := func(ctx context.Context, token string) (Account, bool, error) {
			number, found, err := outside.FindLine(ctx, token)
			return Account{Number: number}, found, err
		}
		_, err = einmal.Effect(ctx, c, "line", einmal.RecoverByLookup(find, func(ctx context.Context, token string) (Account, error) {
			number, err := outside.RentLine(ctx, token)
			return Account{Number: number}, err
		}))
		if err != nil {
			return err
		}
		_, err = einmal.Effect(ctx, c, "invoice", einmal.RecoverByHand(func(ctx context.Context) (Account, error) {
			number, err := outside.SendInvoice(ctx) // If the result is unknown, a user reports it.
			return Account{Number: number}, err
		}))
		c.Log.Info("it has what it needs", "number", account.Number)
		return err
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnCreate("make", make)
	// Output:
}

// numbers is a provider that opens accounts, and gives the same number for the same token.
type numbers struct {
	provider

	given map[string]int
}

// OpenAccount opens an account, or returns the one of an earlier call.
func (n numbers) OpenAccount(_ context.Context, token string) (int, error) {
	if _, known := n.given[token]; !known {
		n.given[token] = len(n.given) + 1
	}
	return n.given[token], nil
}

// A handler makes the same call for two purposes. How do both share the call, and what happens after a crash? A function returns the Recovery. A test
// passes a fake of the provider.
func ExampleRecovery() {
	account := func(at provider) einmal.Recovery[Account] {
		return einmal.RecoverByKey(func(ctx context.Context, token string) (Account, error) {
			number, err := at.OpenAccount(ctx, token)
			return Account{Number: number}, err
		})
	}
	bank := numbers{given: map[string]int{}}
	open := func(ctx context.Context, c *einmal.Change[Widget]) error {
		main, err := einmal.Effect(ctx, c, "main-account", account(bank))
		if err != nil {
			return err
		}
		savings, err := einmal.Effect(ctx, c, "savings-account", account(bank))
		c.Object.Status.Phase = fmt.Sprintf("Accounts %d and %d", main.Number, savings.Number)
		return err
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnCreate("open", open)
	// op.Main()

	change := einmaltest.NewChange(fixture.NewWidget("one")) // As a test calls the handler.
	fmt.Println(open(context.Background(), change), change.Object.Status.Phase)
	// Output: <nil> Accounts 1 and 2
}

// errPaperOut is the error of a printer that has printed nothing.
var errPaperOut = errors.New("no paper")

// A system refuses a call, and certainly has done nothing. NotMade says so: the handler is called again after ten minutes. Any other error of this
// call makes the handler fail until a person has found out whether the invoice was sent, because the system cannot look it up.
func ExampleNotMade() {
	send := func(context.Context) (Account, error) { return Account{}, errPaperOut }
	invoice := einmal.RecoverByHand(func(ctx context.Context) (Account, error) {
		sent, err := send(ctx)
		if errors.Is(err, errPaperOut) {
			return Account{}, einmal.NotMade(einmal.RetryAfter(10*time.Minute, err))
		}
		return sent, err // The answer was lost, or something else went wrong: it is unknown what was sent.
	})
	bill := func(ctx context.Context, c *einmal.Change[Widget]) error {
		_, err := einmal.Effect(ctx, c, "invoice", invoice)
		return err
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnCreate("bill", bill)
	// op.Main()

	err := bill(context.Background(), einmaltest.NewChange(fixture.NewWidget("one"))) // As a test calls the handler.
	fmt.Println(errors.Is(err, errPaperOut))
	// Output: true
}
