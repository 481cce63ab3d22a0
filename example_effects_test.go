package einmal_test

import (
	"context"
	"errors"

	"github.com/einmal-operators/einmal"
)

// provider is a system outside of the cluster, and how it can be called without making something twice.
type provider interface {
	// OpenAccount opens no second account for the same token.
	OpenAccount(ctx context.Context, token string) (number int, err error)
	// CreateBucket answers errExists where there is one by that name, and tells whether that is our own.
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
		account, err := einmal.Effect(ctx, c, "account", einmal.Keyed(func(ctx context.Context, token string) (Account, error) {
			number, err := outside.OpenAccount(ctx, token) // The same token each time: an idempotency key.
			return Account{Number: number}, err
		}))
		if err != nil {
			return err
		}
		_, err = einmal.Effect(ctx, c, "bucket", einmal.Named(string(c.Object.UID), func(ctx context.Context, name string) (Bucket, error) {
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
		_, err = einmal.Effect(ctx, c, "line", einmal.Findable(find, func(ctx context.Context, token string) (Account, error) {
			number, err := outside.RentLine(ctx, token)
			return Account{Number: number}, err
		}))
		if err != nil {
			return err
		}
		_, err = einmal.Effect(ctx, c, "invoice", einmal.Stop(func(ctx context.Context) (Account, error) {
			number, err := outside.SendInvoice(ctx) // Where nobody knows whether it went, a person is asked.
			return Account{Number: number}, err
		}))
		c.Log.Info("it has what it needs", "number", account.Number)
		return err
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(addTestKinds))
	einmal.For[Widget](op).OnCreate("make", make)
	// Output:
}
