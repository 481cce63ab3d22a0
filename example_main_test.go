package einmal_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

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
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, registrar) })
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds),
		einmal.Flags(func(set *flag.FlagSet) {
			set.StringVar(&registrar, "registrar-url", "http://localhost:8000", "`URL` of the registrar")
		}),
		einmal.Logger(slog.New(slog.NewJSONHandler(os.Stderr, nil))),
		einmal.SetupManager(func(mgr manager.Manager) error { return mgr.Add(clean) }),
		einmal.ManagerOptions(func(options *manager.Options) {
			options.Metrics.ExtraHandlers = map[string]http.Handler{"/registrar": page} // Beside /metrics.
		}),
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

// widgetLimits is a webhook that rejects large widgets.
type widgetLimits struct{}

func (widgetLimits) ValidateCreate(_ context.Context, w *Widget) (admission.Warnings, error) {
	if w.Spec.Size > 10 {
		return nil, errors.New("spec.size must be at most 10")
	}
	return nil, nil
}

func (l widgetLimits) ValidateUpdate(ctx context.Context, _, w *Widget) (admission.Warnings, error) {
	return l.ValidateCreate(ctx, w)
}

func (widgetLimits) ValidateDelete(context.Context, *Widget) (admission.Warnings, error) {
	return nil, nil
}

// An operator with a webhook and a reconciler of controller-runtime. A flag names the folder of the webhook server's certificate.
func ExampleSetupManager() {
	var certificates string
	plain := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds),
		einmal.Flags(func(set *flag.FlagSet) {
			set.StringVar(&certificates, "webhook-cert-dir", "/certificates", "`folder` with tls.crt and tls.key")
		}),
		einmal.ManagerOptions(func(options *manager.Options) {
			options.WebhookServer = webhook.NewServer(webhook.Options{Port: 9443, CertDir: certificates})
		}),
		einmal.SetupManager(func(mgr manager.Manager) error {
			return ctrl.NewWebhookManagedBy(mgr, &Widget{}).WithValidator(widgetLimits{}).Complete()
		}),
		einmal.SetupManager(func(mgr manager.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(plain)
		}),
		einmal.Permissions(&corev1.ConfigMap{}, "get", "list", "watch"), // Of the reconciler.
	)
	einmal.For[Widget](op).OnCreate("make", fixture.Nothing)
	fmt.Println(mistakesOf(op))
	// The program ends with op.Main().

	// Output: <nil>
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
