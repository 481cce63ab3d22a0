package einmal_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Many objects are handled at the same time, but a system behind some handlers accepts two calls at once. How do these handlers wait for each other?
// A function adds that to any handler.
func ExampleHandlerFunc() {
	slots := make(chan struct{}, 2)
	limited := func(next einmal.HandlerFunc[Widget]) einmal.HandlerFunc[Widget] {
		return func(ctx context.Context, c *einmal.Change[Widget]) error {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				return next(ctx, c)
			case <-ctx.Done():
				return fmt.Errorf("wait for a free slot: %w", ctx.Err())
			}
		}
	}
	render := limited(func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Object.Status.Phase = "Rendered"
		return nil
	})
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("render", render)
	widgets.OnUpdate("render-again", render, einmal.Fields("spec.color"))
	// op.Main()

	change := einmaltest.NewChange(fixture.NewWidget("one")) // As a test calls the handler.
	fmt.Println(render(context.Background(), change), change.Object.Status.Phase)
	// Output: <nil> Rendered
}

// Some fields must not become smaller. A function adds that rule to any handler of a numeric field.
func ExampleFieldFunc() {
	growing := func(field string, next einmal.FieldFunc[int, Widget]) einmal.FieldFunc[int, Widget] {
		return func(ctx context.Context, c *einmal.Change[Widget], before, after int) error {
			if after < before {
				return einmal.Permanent(fmt.Errorf("%s: must not decrease from %d to %d", field, before, after))
			}
			return next(ctx, c, before, after)
		}
	}
	resize := growing("spec.size", func(_ context.Context, c *einmal.Change[Widget], _, after int) error {
		c.Object.Status.Phase = fmt.Sprint("Size ", after)
		return nil
	})
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.OnField(einmal.For[Widget](op), "resize", "spec.size", resize)
	// op.Main()

	change := einmaltest.NewChange(fixture.NewWidget("one")) // As a test calls the handler.
	fmt.Println(resize(context.Background(), change, 1, 2), change.Object.Status.Phase)
	fmt.Println(resize(context.Background(), change, 2, 1))
	// Output:
	// <nil> Size 2
	// spec.size: must not decrease from 2 to 1
}

// Handlers are declared from a table, and the table says what a failure means: a registration is tried again, a payment that has failed is a matter
// for people, and a greeting is not worth another attempt.
func ExampleErrorPolicy() {
	handlers := []struct {
		id      string
		handle  einmal.HandlerFunc[Widget]
		onError einmal.ErrorPolicy
	}{
		{"register", fixture.Nothing[Widget], einmal.PolicyRetry},
		{"charge", fixture.Nothing[Widget], einmal.PolicyFail},
		{"greet", fixture.Nothing[Widget], einmal.PolicyIgnore},
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	for _, one := range handlers {
		widgets.OnCreate(one.id, one.handle, einmal.OnError(one.onError))
	}
	fmt.Println(mistakesOf(op))
	// Output: <nil>
}

// connection is a connection to a database, which is opened once for the whole operator.
type connection struct{ open bool }

// connect returns a startup handler: the operator does not start to work before the database answers.
func (d *connection) connect(dial func() error) einmal.StartupFunc {
	return func(context.Context, client.Client) error {
		if err := dial(); err != nil {
			return einmal.RetryAfter(10*time.Second, fmt.Errorf("connect to the database: %w", err))
		}
		d.open = true
		return nil
	}
}

// disconnect returns a cleanup handler: no other handler runs any more.
func (d *connection) disconnect() einmal.CleanupFunc {
	return func(context.Context) error {
		d.open = false
		return nil
	}
}

// alive returns a probe, which /healthz shows.
func (d *connection) alive() einmal.ProbeFunc {
	return func(context.Context) (any, error) {
		if !d.open {
			return nil, errors.New("the database is not connected")
		}
		return map[string]bool{"connected": d.open}, nil
	}
}

// Several operators need a database. How do they open, watch and close the connection in the same way? The functions of the operator's start, end and
// health come from one type.
func ExampleStartupFunc() {
	var database connection
	connect := database.connect(func() error { return nil })
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	op.OnStartup("connect", connect)
	op.OnProbe("database", database.alive())
	op.OnCleanup("disconnect", database.disconnect())
	// op.Main()

	ctx := context.Background() // As a test calls the functions.
	fmt.Println(database.alive()(ctx))
	fmt.Println(connect(ctx, nil))
	fmt.Println(database.alive()(ctx))
	fmt.Println(database.disconnect()(ctx))
	// Output:
	// <nil> the database is not connected
	// <nil>
	// map[connected:true] <nil>
	// <nil>
}

// A program has its own main function, and the operator is one part of it. Run returns mistakes in the declarations, all at once, before it sends any
// request.
func ExampleRunOptions() {
	serve := func(ctx context.Context, op *einmal.Operator, config *rest.Config) error {
		return op.Run(ctx, config, einmal.RunOptions{
			HealthAddress:  ":8081",
			MetricsAddress: ":8080",
			// For go tool pprof http://127.0.0.1:6060/debug/pprof/profile
			ProfilingAddress: "127.0.0.1:6060",
			SingleReplica:    true, // The Deployment has one replica and the strategy Recreate.
		})
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds), einmal.Workers(0))
	einmal.For[Widget](op).OnCreate("make", fixture.Nothing)
	config := &rest.Config{Host: "https://cluster.example.com"} // Usually from ctrl.GetConfig.
	if err := serve(context.Background(), op, config); err != nil {
		fmt.Println(err)
	}
	// Output: option Workers: must be at least 1, got 0
}
