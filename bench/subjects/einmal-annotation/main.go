// Einmal as a new user writes it for a kind whose status has no field for records: they are kept in an annotation.
package main

import (
	"context"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/bench/gadget"
)

type plain = einmal.Resource[gadget.Spec, gadget.Status]

func main() {
	op := einmal.New("annotated." + gadget.Group)
	gadgets := einmal.For[plain](op, einmal.GVK(gadget.Group, gadget.Version, gadget.Annotated))
	gadgets.OnCreate("report", report)
	gadgets.OnUpdate("report-again", report, einmal.Fields("spec.size"))
	gadgets.OnDelete("release", func(context.Context, *einmal.Change[plain]) error { return nil })
	op.Main()
}

func report(_ context.Context, c *einmal.Change[plain]) error {
	c.Object.Status = gadget.Status{Size: c.Object.Spec.Size, Phase: gadget.Ready}
	return nil
}
