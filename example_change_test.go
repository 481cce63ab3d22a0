package einmal_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// One function serves several verbs. How does it find out why it runs? It tests the Reason: here, to choose the request to a registrar.
func ExampleReason() {
	method := func(reason einmal.Reason) string {
		switch reason {
		case einmal.ReasonCreate:
			return http.MethodPost
		case einmal.ReasonUpdate, einmal.ReasonReconcile:
			return http.MethodPut
		case einmal.ReasonDelete:
			return http.MethodDelete
		case einmal.ReasonResume, einmal.ReasonTimer, einmal.ReasonDaemon:
			return http.MethodHead // Nothing has changed: only check that the registrar still has it.
		default: // The reasons of OnEvent, which must not change anything.
			return ""
		}
	}
	register := func(_ context.Context, c *einmal.Change[Widget]) error {
		fmt.Println(c.Reason, method(c.Reason), "/widgets/"+c.Object.Name)
		return nil
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("register", register)
	widgets.OnUpdate("update", register, einmal.Fields("spec.size"))
	widgets.OnDelete("unregister", register)
	widgets.Timer("check", time.Hour, register)
	// op.Main()

	for _, reason := range []einmal.Reason{einmal.ReasonCreate, einmal.ReasonUpdate, einmal.ReasonDelete, einmal.ReasonTimer} {
		change := einmaltest.NewChange(fixture.NewWidget("one")) // As a test calls the handler.
		change.Reason = reason
		if err := register(context.Background(), change); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// create POST /widgets/one
	// update PUT /widgets/one
	// delete DELETE /widgets/one
	// timer HEAD /widgets/one
}

// What has changed since the handler last succeeded? Diff has one Difference for each field: here as text for people.
func ExampleDifference() {
	describe := func(one einmal.Difference) string {
		field := strings.Join(one.Path, ".")
		switch one.Op {
		case einmal.DiffAdded:
			return fmt.Sprintf("%s was set to %v", field, one.New)
		case einmal.DiffChanged:
			return fmt.Sprintf("%s was changed from %v to %v", field, one.Old, one.New)
		case einmal.DiffRemoved:
			return fmt.Sprintf("%s was removed, it was %v", field, one.Old)
		default:
			return field
		}
	}
	audit := func(_ context.Context, c *einmal.Change[Widget]) error {
		for _, one := range c.Diff {
			fmt.Println(describe(one))
		}
		return nil
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnUpdate("audit", audit)
	// op.Main()

	change := einmaltest.NewChange(fixture.NewWidget("one")) // As a test calls the handler.
	change.Reason = einmal.ReasonUpdate
	change.Diff = []einmal.Difference{
		{Op: einmal.DiffAdded, Path: []string{"metadata", "labels", "team"}, New: "blue"},
		{Op: einmal.DiffRemoved, Path: []string{"spec", "color"}, Old: "red"},
		{Op: einmal.DiffChanged, Path: []string{"spec", "size"}, Old: int64(1), New: int64(2)},
	}
	if err := audit(context.Background(), change); err != nil {
		fmt.Println(err)
	}
	// Output:
	// metadata.labels.team was set to blue
	// spec.color was removed, it was red
	// spec.size was changed from 1 to 2
}

// A user removes a field. How does a handler find what it has to clean up? It selects the differences of one operation.
func ExampleDiffOp() {
	fields := func(all []einmal.Difference, by einmal.DiffOp) []string {
		var found []string
		for _, one := range all {
			if one.Op == by {
				found = append(found, strings.Join(one.Path, "."))
			}
		}
		return found
	}
	fmt.Println(fields([]einmal.Difference{
		{Op: einmal.DiffRemoved, Path: []string{"spec", "color"}, Old: "red"},
		{Op: einmal.DiffChanged, Path: []string{"spec", "size"}, Old: int64(1), New: int64(2)},
	}, einmal.DiffRemoved))
	// Output:
	// [spec.color]
}

// How many objects are there now? An event handler counts them without any request, for a metric. Objects that existed before the process are
// listed. Every later addition and deletion is reported, so the number stays right.
func ExampleKind_OnEvent() {
	var known atomic.Int64 // Events of different objects come concurrently.
	count := func(_ context.Context, c *einmal.Change[Widget]) error {
		switch c.Reason { //nolint:exhaustive // OnEvent has these four reasons.
		case einmal.WatchListed, einmal.WatchAdded:
			known.Add(1)
		case einmal.WatchDeleted:
			known.Add(-1)
		case einmal.WatchModified: // There are as many as before.
		}
		return nil
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnEvent("count", count)
	// op.Main()

	for _, reason := range []einmal.Reason{einmal.WatchListed, einmal.WatchAdded, einmal.WatchModified, einmal.WatchDeleted} {
		change := einmaltest.NewChange(fixture.NewWidget("one")) // As a test calls the handler.
		change.Reason = reason
		if err := count(context.Background(), change); err != nil {
			fmt.Println(err)
		}
		fmt.Println(reason, known.Load())
	}
	// Output:
	// listed 1
	// added 2
	// modified 2
	// deleted 1
}

// A Reconcile restores its children, whatever has happened to them. How does it report that a child was deleted by other clients? It looks at
// the related objects that triggered it.
func ExampleRelated() {
	deleted := func(triggeredBy []einmal.Related) []string {
		var names []string
		for _, one := range triggeredBy {
			if one.Event == einmal.WatchDeleted {
				names = append(names, one.Kind+" "+one.Name)
			}
		}
		return names
	}
	keep := func(ctx context.Context, c *einmal.Change[Widget]) error {
		for _, name := range deleted(c.TriggeredBy) {
			c.Event(einmal.EventWarning, "ChildDeleted", "%s was deleted and is created again.", name)
		}
		return c.Apply(ctx, fixture.NewConfigMap(c.Object.Name, c.Object.Spec.Size))
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds), einmal.Applies(&corev1.ConfigMap{}))
	einmal.For[Widget](op).Reconcile("keep", keep, einmal.Owns[corev1.ConfigMap]())
	// op.Main()

	fmt.Println(deleted([]einmal.Related{
		{Kind: "ConfigMap", Namespace: "default", Name: "one", Event: einmal.WatchDeleted},
		{Kind: "ConfigMap", Namespace: "default", Name: "two", Event: einmal.WatchModified},
	}))
	// Output:
	// [ConfigMap one]
}

// A daemon's context ends. Is the object gone, or does only the operator stop? The cause says it: a subscription ends with its object, and
// survives a restart of the operator.
func Example_errObjectDeleted() {
	subscribe := func(ctx context.Context, c *einmal.Change[Widget]) error {
		<-ctx.Done() // Receive messages for the widget until then.
		if errors.Is(context.Cause(ctx), einmal.ErrObjectDeleted) {
			fmt.Println("unsubscribe", c.Object.Name)
			return nil
		}
		fmt.Println("the next process continues with", c.Object.Name)
		return nil
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).Daemon("subscribe", subscribe, einmal.AbandonAfter(time.Minute))
	// op.Main()

	for _, cause := range []error{einmal.ErrObjectDeleted, context.Canceled} {
		ctx, cancel := context.WithCancelCause(context.Background()) // As a test calls the handler.
		cancel(cause)
		if err := subscribe(ctx, einmaltest.NewChange(fixture.NewWidget("one"))); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// unsubscribe one
	// the next process continues with one
}
