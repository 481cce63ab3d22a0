package scripts_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// filterSubjects are the operators of scripts about filters and fields.
func filterSubjects() einmaltest.Subjects {
	return einmaltest.Subjects{
		"field-widgets":     noting(fields),
		"moving-widgets":    noting(moves),
		"colorless-widgets": noting(colorless),
		"matching-widgets":  noting(matches),
		"careless-widgets":  noting(untagged),
		"team-widgets":      noting(teams),
		"mixed-teams":       noting(mixedTeams),
		"joined-widgets":    noting(joinedFilters),
		"unfiltered":        noting(unfiltered),
	}
}

// diary is what handlers saw.
type diary struct {
	mu   sync.Mutex
	seen []string
}

func (d *diary) add(format string, arguments ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, fmt.Sprintf(format, arguments...))
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.seen) == 0 {
		return "nothing"
	}
	return strings.Join(d.seen, "; ")
}

// noting is a subject whose handlers note what they saw: the outcome saw.
func noting(declare func(*einmal.Kind[fixture.Widget], *diary)) func(*einmaltest.World) einmaltest.Subject {
	return func(w *einmaltest.World) einmaltest.Subject {
		notes := &diary{}
		made := func(declare func(*einmal.Kind[fixture.Widget], *diary)) func(*einmaltest.Process) *einmal.Operator {
			return func(*einmaltest.Process) *einmal.Operator {
				op := fixture.NewOperator()
				declare(einmal.For[fixture.Widget](op), notes)
				return op
			}
		}
		return einmaltest.Subject{
			Operator: made(declare),
			Versions: map[string]func(*einmaltest.Process) *einmal.Operator{"with-status-handler": made(withStatusHandler)},
			Outcomes: func() map[string]any { return map[string]any{"saw": notes} },
		}
	}
}

func idle(context.Context, *einmal.Change[fixture.Widget]) error { return nil }

// fields has handlers of single fields; that of the size answers creations too.
func fields(widgets *einmal.Kind[fixture.Widget], notes *diary) {
	widgets.OnCreate("make", idle)
	einmal.OnField(widgets, "color", "spec.color", func(_ context.Context, c *einmal.Change[fixture.Widget], before, after string) error {
		notes.add("color %q -> %q, %s", before, after, c.Diff[0].Op)
		return nil
	})
	einmal.OnField(widgets, "size", "spec.size", func(_ context.Context, c *einmal.Change[fixture.Widget], before, after *int) error {
		notes.add("size %s -> %s, %s", number(before), number(after), c.Reason)
		return nil
	}, einmal.AlsoAtCreation())
	einmal.OnField(widgets, "tags", "spec.tags", func(_ context.Context, c *einmal.Change[fixture.Widget], before, after []string) error {
		notes.add("tags %v -> %v, %d difference: %s", before, after, len(c.Diff), c.Diff[0].Op)
		return nil
	})
}

func number(n *int) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// moves has handlers of single transitions.
func moves(widgets *einmal.Kind[fixture.Widget], notes *diary) {
	note := func(id string) einmal.FieldFunc[string, fixture.Widget] {
		return func(_ context.Context, _ *einmal.Change[fixture.Widget], before, after string) error {
			notes.add("%s %q -> %q", id, before, after)
			return nil
		}
	}
	einmal.OnField(widgets, "red-to-green", "spec.color", note("red-to-green"),
		einmal.FieldChanges("spec.color", einmal.From(einmal.Equals("red")), einmal.To(einmal.Equals("green"))))
	einmal.OnField(widgets, "removed", "spec.color", note("removed"),
		einmal.FieldChanges("spec.color", einmal.To(einmal.Absent())))
	einmal.OnField(widgets, "gold", "spec.color", note("gold"),
		einmal.FieldChanges("spec.color", einmal.FromOrTo(einmal.Equals("gold"))))
}

// colorless has a create handler for what has no color, and one for the rest.
func colorless(widgets *einmal.Kind[fixture.Widget], _ *diary) {
	widgets.OnCreate("without-color", idle, einmal.FieldMatches("spec.color", einmal.Absent()))
	widgets.OnCreate("with-color", idle, einmal.FieldMatches("spec.color", einmal.Present()))
}

// matches has a handler for each way to match a label, and one for annotations.
func matches(widgets *einmal.Kind[fixture.Widget], notes *diary) {
	widgets.OnCreate("exact", idle, einmal.Labels("team", einmal.Equals("a")))
	widgets.OnCreate("present", idle, einmal.Labels("team", einmal.Present()))
	widgets.OnCreate("absent", idle, einmal.Labels("team", einmal.Absent()))
	widgets.OnCreate("told", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		notes.add("%s is for told", c.Object.Name)
		return nil
	}, einmal.Labels("team", einmal.Satisfies(func(value any, found bool) bool { return value == nil && !found || value == "" && found })))
	widgets.OnCreate("annotated", idle, einmal.Annotations("example.com/team", einmal.Equals("a")))
}

// untagged has a filter that panics for some objects.
func untagged(widgets *einmal.Kind[fixture.Widget], _ *diary) {
	widgets.OnCreate("make", idle)
	widgets.OnUpdate("tagged", idle, einmal.When(func(w *fixture.Widget) bool { return w.Spec.Color == "" || w.Spec.Tags[0] != "" }))
}

// teams has handlers for the objects of a team alone.
func teams(widgets *einmal.Kind[fixture.Widget], _ *diary) {
	ours := einmal.Labels("team", einmal.Equals("a"))
	widgets.OnCreate("make", idle, ours)
	widgets.OnUpdate("resize", idle, einmal.Fields("spec.size"), ours)
	widgets.OnResume("greet", idle, ours)
	widgets.OnDelete("unmake", idle, ours)
	widgets.Reconcile("look", idle, einmal.Fields("spec.size"), ours)
	widgets.OnEvent("watch", idle, ours)
}

// mixedTeams has handlers for all objects, and for those of a team.
func mixedTeams(widgets *einmal.Kind[fixture.Widget], _ *diary) {
	ours := einmal.Labels("team", einmal.Equals("a"))
	widgets.OnCreate("make", idle)
	widgets.OnCreate("make-for-team", idle, ours)
	widgets.OnUpdate("resize", idle, einmal.Fields("spec.size"))
	widgets.OnUpdate("resize-for-team", idle, einmal.Fields("spec.size"), ours)
	widgets.OnDelete("unmake-for-team", idle, ours)
}

// joinedFilters has filters that are joined.
func joinedFilters(widgets *einmal.Kind[fixture.Widget], _ *diary) {
	red, large := einmal.FieldMatches("spec.color", einmal.Equals("red")), einmal.FieldMatches("spec.size", einmal.Satisfies(func(size any, _ bool) bool {
		n, _ := size.(int64)
		return n > 10
	}))
	named := einmal.When(func(w *fixture.Widget) bool { return w.Name == "one" && w.Namespace == "default" })
	widgets.OnCreate("all", idle, einmal.All(red, large))
	widgets.OnCreate("any", idle, einmal.Any(red, large))
	widgets.OnCreate("not", idle, einmal.Not(red))
	widgets.OnCreate("none", idle, einmal.None(red, large))
	widgets.OnCreate("named", idle, named)
}

// unfiltered has handlers that do not look at the status; in its version with-status-handler there is one more.
func unfiltered(widgets *einmal.Kind[fixture.Widget], _ *diary) {
	widgets.OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Object.Status.Phase = "made"
		return nil
	})
	widgets.OnUpdate("resize", idle, einmal.Fields("spec.size"))
	widgets.OnUpdate("follow", idle)
}

func withStatusHandler(widgets *einmal.Kind[fixture.Widget], notes *diary) {
	unfiltered(widgets, notes)
	einmal.OnField(widgets, "phase", "status.phase", func(_ context.Context, _ *einmal.Change[fixture.Widget], before, after string) error {
		notes.add("phase %q -> %q", before, after)
		return nil
	})
}
