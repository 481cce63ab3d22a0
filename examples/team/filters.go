package main

import (
	"context"

	"github.com/einmal-operators/einmal"
)

// declareFilters declares handlers that are for some teams, or for some changes.
func declareFilters(teams *einmal.Kind[team]) {
	// Handlers for teams of which something holds.
	teams.OnCreate("support", notify("SupportByPhone"), einmal.Labels("tier", einmal.Equals("gold")))
	teams.OnCreate("support-all", notify("SupportByMail"), einmal.Labels("tier", einmal.Absent()), einmal.When(active))
	// Filters joined.
	teams.OnUpdate("remind", notify("MembersChanged"), einmal.Fields("spec.members"),
		einmal.Any(einmal.Labels("tier", einmal.Equals("gold")), einmal.FieldMatches("spec.members", einmal.Satisfies(crowded))),
		einmal.Not(einmal.Annotations("example.com/quiet", einmal.Present())),
	)
	teams.OnUpdate("check", notify("TitleChanged"), einmal.Fields("spec.title"),
		einmal.All(einmal.When(active), einmal.FieldMatches("spec.plan", einmal.Present())),
		einmal.None(einmal.Labels("tier", einmal.Equals("gold")), einmal.Labels("tier", einmal.Equals("silver"))),
	)
	// Handlers for some changes: the end of a trial, and every change to or from the large plan.
	teams.OnUpdate("thank", notify("TrialEnded"), einmal.FieldChanges("spec.plan", einmal.From(einmal.Equals("trial")), einmal.To(einmal.Present())))
	teams.OnUpdate("inform", notify("SupportInformed"), einmal.FieldChanges("spec.plan", einmal.FromOrTo(einmal.Equals("large"))))
}

// active is a filter in Go: it looks at the team alone, and gives the same answer for the same team.
func active(of *team) bool { return !of.Spec.Paused }

// crowded is a condition on one value, as it is in JSON.
func crowded(value any, found bool) bool {
	members, isList := value.([]any)
	return found && isList && len(members) > 2
}

// notify makes a handler that sends an event.
func notify(reason string) func(context.Context, *change) error {
	return func(_ context.Context, c *change) error {
		c.Event(einmal.EventNormal, reason, "This is about the team %s.", c.Object.Name)
		return nil
	}
}
