package einmal_test

import (
	"context"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// An operator with a flag, a logger, a background task and a page of its own. Each flag can be given by an environment variable too:
// EINMAL_REGISTRAR_URL here.
func ExampleFlags() {
	var registrar string
	clean := manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done() // Work in the background until the operator stops.
		return nil
	})
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds),
		einmal.Flags(func(set *flag.FlagSet) {
			set.StringVar(&registrar, "registrar-url", "http://localhost:8000", "`URL` of the registrar")
		}),
		einmal.Logger(slog.New(slog.NewJSONHandler(os.Stderr, nil))),
		einmal.Runnables(clean),
		einmal.HTTPHandler("/registrar", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })),
		einmal.HandlerDefaults(einmal.AttemptTimeout(time.Minute), einmal.Backoff(time.Second, time.Minute), einmal.MaxAttempts(20)),
		einmal.LeaseDuration(30*time.Second),
		einmal.WithoutEvents(),
	)
	op.OnStartup("registrar", func(ctx context.Context, _ client.Client) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodHead, registrar, http.NoBody) // The flag has its value by now.
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return einmal.RetryAfter(10*time.Second, err)
		}
		return answer.Body.Close()
	})
	einmal.For[Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Log.Info("registering", "registrar", registrar)
		return nil
	})
	// The program ends with op.Main(): run --registrar-url https://registrar.example.com

	// Output:
}

// A handler sends an event about its child.
func ExampleChange_EventAbout() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[Widget]) error {
		child := fixture.NewConfigMap(c.Object.Name, c.Object.Spec.Size)
		if err := c.Apply(ctx, child); err != nil {
			return err
		}
		return c.EventAbout(child, einmal.EventNormal, "MadeFor", "This is for %s.", c.Object.Name)
	})
	// Output:
}
