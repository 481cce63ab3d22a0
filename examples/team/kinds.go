package main

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
)

// declareKinds declares what is done for objects of kinds that are not known here: of all that are listed in a category. They
// may come and go while the operator runs.
func declareKinds(op *einmal.Operator) {
	furniture := einmal.ForEvery(op, einmal.Selector{Category: "furniture", Group: "example.com"})
	furniture.OnEvent("inventory", inventory)
}

// inventory learns from the object of which kind it is.
func inventory(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
	c.Log.Debug("there is furniture", "kind", c.Object.GetKind(), "apiVersion", c.Object.GetAPIVersion(), "what", c.Reason)
	return nil
}
