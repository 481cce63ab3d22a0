// Command killed is an operator for the test that kills it. It says on its standard output which handlers run, and its
// create handler ends only when the environment does not tell it to hang.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
)

func main() {
	op := einmal.New("tests.einmal.dev")
	things := einmal.For[unstructured.Unstructured](op, einmal.GVK("test.einmal.dev", "v1", os.Getenv("KIND")))
	things.OnCreate("make", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		say("make", c)
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

func say(id string, c *einmal.Change[unstructured.Unstructured]) {
	repeated := ""
	if c.MaybeRepeated {
		repeated = " maybe repeated"
	}
	fmt.Printf("%s: %s (%s, attempt %d)%s\n", c.Object.GetName(), id, c.Reason, c.Attempt, repeated)
}
