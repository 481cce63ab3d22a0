// Start is the first step of the tutorial: an operator that sees claims and does nothing for them.
package main

import (
	"context"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
	"github.com/einmal-operators/einmal/operators/volumeclaim/config/crd"
)

func main() {
	op := einmal.New("volumeclaims.einmal.dev", einmal.Scheme(v1.AddToScheme), einmal.CRDs(crd.YAML))
	claims := einmal.For[v1.EphemeralVolumeClaim](op)
	claims.OnCreate("greet", greet)
	op.Main()
}

// greet says that it was called.
func greet(_ context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	c.Log.Info("a claim is here", "size", c.Object.Spec.Size.String())
	return nil
}
