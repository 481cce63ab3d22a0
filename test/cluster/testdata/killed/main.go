// Command killed is an operator for the test that kills it. It says on its standard output which handlers run, and its
// create handler ends only when the environment does not tell it to hang. With BANK it opens an account in that folder, and
// hangs when that is done.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
)

func main() {
	op := einmal.New("tests.einmal.dev")
	things := einmal.For[unstructured.Unstructured](op, einmal.GVK("test.einmal.dev", "v1", os.Getenv("KIND")))
	things.OnCreate("make", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		say("make", c)
		if bank := os.Getenv("BANK"); bank != "" {
			return open(ctx, c, bank)
		}
		if os.Getenv("HANG") == "" {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	things.OnUpdate("resize", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		say("resize", c)
		return nil
	})
	things.OnDelete("unmake", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		say("unmake", c)
		return nil
	})
	op.Main()
}

// account is what a bank gives.
type account struct {
	Number int `json:"number"`
}

// open opens an account, and shows in the status which one it is.
func open(ctx context.Context, c *einmal.Change[unstructured.Unstructured], bank string) error {
	opened, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(ctx context.Context, token string) (account, error) {
		return call(ctx, c, bank, token)
	}))
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(c.Object.Object, fmt.Sprintf("account %d", opened.Number), "status", "phase")
}

// call opens an account in a folder, unless there is one with this token.
func call(ctx context.Context, c *einmal.Change[unstructured.Unstructured], bank, token string) (account, error) {
	if err := os.WriteFile(filepath.Join(bank, token), nil, 0o600); err != nil {
		return account{}, err
	}
	open, err := os.ReadDir(bank)
	say("call", c)
	if os.Getenv("HANG") != "" {
		<-ctx.Done()
		return account{}, ctx.Err()
	}
	return account{Number: len(open)}, err
}

func say(id string, c *einmal.Change[unstructured.Unstructured]) {
	repeated := ""
	if c.MaybeRepeated {
		repeated = " maybe repeated"
	}
	fmt.Printf("%s: %s (%s, attempt %d)%s\n", c.Object.GetName(), id, c.Reason, c.Attempt, repeated)
}
