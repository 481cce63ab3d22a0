// Command replica is an operator for the test of several replicas. It says on its standard output which handlers run, and for
// as long as its handler works.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
)

type change = einmal.Change[unstructured.Unstructured]

// answer is what a call outside gives.
type answer struct {
	Number int `json:"number"`
}

func main() {
	op := einmal.New("tests.einmal.dev", einmal.ShutdownTimeout(2*time.Second))
	widgets := einmal.For[unstructured.Unstructured](op, einmal.GVK("test.einmal.dev", "v1", "Widget"))
	widgets.OnCreate("make", func(ctx context.Context, c *change) error {
		fmt.Printf("%s: make %d\n", c.Object.GetName(), c.Attempt)
		switch {
		case strings.HasPrefix(c.Object.GetName(), "retried") && c.Attempt < 3:
			return einmal.RetryAfter(8*time.Second, errors.New("not yet"))
		case strings.HasPrefix(c.Object.GetName(), "long"):
			return work(ctx, c)
		case c.Object.GetName() == "first":
			_, err := einmal.Effect(ctx, c, "call", einmal.RecoverByHand(func(context.Context) (answer, error) {
				fmt.Printf("%s: call\n", c.Object.GetName())
				return answer{Number: 1}, nil
			}))
			return err
		}
		return nil
	})
	widgets.Daemon("guard", func(ctx context.Context, c *change) error {
		beats := time.NewTicker(20 * time.Millisecond)
		defer beats.Stop()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-beats.C:
				fmt.Printf("guard of %s: %d\n", c.Object.GetName(), time.Now().UnixMicro())
			}
		}
	})
	op.Main()
}

// work goes on until the operator stops, and would then write that it is done.
func work(ctx context.Context, c *change) error {
	beats := time.NewTicker(50 * time.Millisecond)
	defer beats.Stop()
	for n := 0; n < 1200; n++ {
		select {
		case <-ctx.Done():
			return unstructured.SetNestedField(c.Object.Object, "stopped in the middle", "status", "phase")
		case <-beats.C:
			fmt.Printf("%s: beat\n", c.Object.GetName())
		}
	}
	return errors.New("it ended before it was stopped")
}
