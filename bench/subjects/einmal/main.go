// Einmal as a new user writes it, with the records in the status.
package main

import (
	"context"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/bench/gadget"
)

type status struct {
	einmal.Records `json:",inline"`
	gadget.Status  `json:",inline"`
}

type recorded = einmal.Resource[gadget.Spec, status]

func main() {
	op := einmal.New("einmal." + gadget.Group)
	gadgets := einmal.For[recorded](op, einmal.GVK(gadget.Group, gadget.Version, gadget.Recorded))
	gadgets.OnCreate("report", report)
	gadgets.OnUpdate("report-again", report, einmal.Fields("spec.size"))
	gadgets.OnDelete("release", func(context.Context, *einmal.Change[recorded]) error { return nil })
	op.Main()
}

func report(_ context.Context, c *einmal.Change[recorded]) error {
	c.Object.Status.Status = gadget.Status{Size: c.Object.Spec.Size, Phase: gadget.Ready}
	return nil
}
