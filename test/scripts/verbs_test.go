package scripts_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// verbSubjects are the operators of scripts about single verbs.
func verbSubjects() einmaltest.Subjects {
	return einmaltest.Subjects{
		"labelled-widgets":   subjectOf(fixture.Widgets, whole[fixture.Widget]),
		"optional-widgets":   subjectOf(fixture.Widgets, optional[fixture.Widget]),
		"watched-widgets":    subjectOf(fixture.Widgets, watched[fixture.Widget]),
		"only-watch-widgets": subjectOf(fixture.Widgets, watch[fixture.Widget]),
		"level-widgets":      subjectOf(fixture.Widgets, level[fixture.Widget]),
		"mixed-widgets":      subjectOf(fixture.Widgets, mixed[fixture.Widget]),
		"resumed-widgets":    withVersion(subjectOf(fixture.Widgets, resumedAtDeletion[fixture.Widget]), "without-deletion", fixture.Widgets, bySize[fixture.Widget]),
	}
}

// withVersion gives a subject another version of its operator.
func withVersion[T any](subject func(*einmaltest.World) einmaltest.Subject, version string,
	kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), handlers func(*einmal.Kind[T], fixture.Accessors[T], stage),
) func(*einmaltest.World) einmaltest.Subject {
	return func(w *einmaltest.World) einmaltest.Subject {
		made, other := subject(w), subjectOf(kind, handlers)(w)
		made.Versions = map[string]func(*einmaltest.Process) *einmal.Operator{version: other.Operator}
		return made
	}
}

// whole has an update handler that looks at all of the object.
func whole[T any](kind *einmal.Kind[T], of fixture.Accessors[T], s stage) {
	bySize(kind, of, s)
	kind.OnUpdate("follow", func(context.Context, *einmal.Change[T]) error { return nil })
}

// optional takes note of deletions that it sees, and holds none.
func optional[T any](kind *einmal.Kind[T], of fixture.Accessors[T], s stage) {
	bySize(kind, of, s)
	kind.OnDelete("note", func(context.Context, *einmal.Change[T]) error { return nil }, einmal.WithoutFinalizer())
}

// watch has a handler of events, which remembers how many it has had.
func watch[T any](kind *einmal.Kind[T], _ fixture.Accessors[T], s stage) {
	type seen struct{ events int }
	kind.OnEvent("watch", func(_ context.Context, c *einmal.Change[T]) error {
		einmal.Memo[seen](c).events++
		return s.troubles.Next("watch")
	})
}

func watched[T any](kind *einmal.Kind[T], of fixture.Accessors[T], s stage) {
	watch(kind, of, s)
	bySize(kind, of, s)
}

// level keeps the ConfigMap by looking at states alone.
func level[T any](kind *einmal.Kind[T], of fixture.Accessors[T], s stage) {
	kind.Reconcile("sync", configured(of, s, "sync"), einmal.Fields("spec.size"))
}

// mixed has all verbs. Its level-triggered handler has nothing to do where others have done it.
func mixed[T any](kind *einmal.Kind[T], of fixture.Accessors[T], s stage) {
	type looked struct{ times int }
	watch(kind, of, s)
	kind.Reconcile("sync", func(_ context.Context, c *einmal.Change[T]) error {
		if einmal.Memo[looked](c).times++; c.Reason != einmal.ReasonReconcile {
			return errors.New("it is called for " + fmt.Sprint(c.Reason))
		}
		of.SetPhase(c.Object, fmt.Sprintf("size %d", of.Size(c.Object)))
		return s.troubles.Next("sync")
	})
	registered(kind, of, s)
	kind.OnDelete("note", func(context.Context, *einmal.Change[T]) error { return nil }, einmal.WithoutFinalizer())
}

// resumedAtDeletion has two handlers that resume, one of them for deleted objects too.
func resumedAtDeletion[T any](kind *einmal.Kind[T], of fixture.Accessors[T], s stage) {
	registered(kind, of, s)
	kind.OnResume("see", func(context.Context, *einmal.Change[T]) error { return nil }, einmal.AlsoAtDeletion())
}
