package main

import (
	"context"

	"github.com/einmal-operators/einmal"
)

// declareFilters declares handlers that are for some teams, or for some changes.
func declareFilters(teams *einmal.Kind[team]) {
	// Handlers for teams of which something holds.
	teams.OnCreate("support", support("by phone"), einmal.Labels("tier", einmal.Equals("gold")))
	teams.OnCreate("support-all", support("by mail"), einmal.Labels("tier", einmal.Absent()), einmal.When(active))
	teams.OnCreate("badge", badge, einmal.Annotations("example.com/badge", einmal.Present()))
	// Filters joined.
	teams.OnUpdate("remind", remind, einmal.Fields("spec.members"),
		einmal.Any(einmal.Labels("tier", einmal.Equals("gold")), einmal.FieldMatches("spec.members", einmal.Satisfies(crowded))),
		einmal.Not(einmal.Annotations("example.com/quiet", einmal.Present())),
	)
	teams.OnUpdate("check", remind, einmal.Fields("spec.title"),
		einmal.All(einmal.When(active), einmal.FieldMatches("spec.plan", einmal.Present())),
		einmal.None(einmal.Labels("tier", einmal.Equals("gold")), einmal.Labels("tier", einmal.Equals("silver"))),
	)
	// Handlers for some changes: the end of a trial, and every change to or from the gold plan.
	teams.OnUpdate("thank", thank, einmal.FieldChanges("spec.plan", einmal.From(einmal.Equals("trial")), einmal.To(einmal.Present())))
	teams.OnUpdate("inform", inform, einmal.FieldChanges("spec.plan", einmal.FromOrTo(einmal.Equals("gold"))))
}

// active is a filter in Go: it looks at the team alone, and gives the same answer for the same team.
func active(of *team) bool { return !of.Spec.Paused }

// crowded is a condition on one value, as it is in JSON.
func crowded(value any, found bool) bool {
	members, isList := value.([]any)
	return found && isList && len(members) > 2
}

func support(how string) func(context.Context, *change) error {
	return func(_ context.Context, c *change) error {
		c.Object.Status.Support = how
		return nil
	}
}

func badge(_ context.Context, c *change) error {
	c.Object.Status.Badge = c.Object.Annotations["example.com/badge"]
	return nil
}

func remind(_ context.Context, c *change) error {
	c.Event(einmal.EventNormal, "Reminded", "This team is looked after by hand.")
	return nil
}

func thank(_ context.Context, c *change) error {
	c.Event(einmal.EventNormal, "Thanked", "Welcome to the plan %s.", c.Object.Spec.Plan)
	return nil
}

func inform(_ context.Context, c *change) error {
	c.Event(einmal.EventNormal, "SupportInformed", "The support team knows the new plan.")
	return nil
}
