package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// smallOnly is a webhook that rejects widgets of a size above 10.
type smallOnly struct{}

func (smallOnly) ValidateCreate(_ context.Context, w *fixture.Widget) (admission.Warnings, error) {
	if w.Spec.Size > 10 {
		return nil, errors.New("spec.size must be at most 10")
	}
	return nil, nil
}

func (s smallOnly) ValidateUpdate(ctx context.Context, _, w *fixture.Widget) (admission.Warnings, error) {
	return s.ValidateCreate(ctx, w)
}

func (smallOnly) ValidateDelete(context.Context, *fixture.Widget) (admission.Warnings, error) {
	return nil, nil
}

// webhookServer returns a webhook server, and what a configuration needs to call the path of one of its webhooks.
func webhookServer(t *testing.T, path string) (webhook.Server, admissionv1.WebhookClientConfig) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	folder := t.TempDir()
	err = errors.Join(err, os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	address := cluster.FreeAddress(t)
	free, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	url := "https://" + address + path
	return webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: int(free.Port()), CertDir: folder}), admissionv1.WebhookClientConfig{URL: &url, CABundle: certificate}
}

// validation calls a webhook for the widgets of a namespace.
func validation(namespace string, by admissionv1.WebhookClientConfig) *admissionv1.ValidatingWebhookConfiguration {
	none := admissionv1.SideEffectClassNone
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "widgets." + fixture.Group, ClientConfig: by, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{fixture.Group}, APIVersions: []string{"v1"}, Resources: []string{"widgets"}},
			}},
		}},
	}
}

// An author adds to the manager of Run what controller-runtime offers: a webhook, a reconciler and a page beside the metrics.
func TestAnAuthorAddsToTheManagerOfRun(t *testing.T) {
	w := sharedWorld(t)
	namespace := w.Namespace(t, "webhook")
	server, reached := webhookServer(t, "/validate-"+strings.ReplaceAll(fixture.Group, ".", "-")+"-v1-widget")
	reconciled, shown := make(chan string, 100), cluster.FreeAddress(t)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds),
		einmal.ManagerOptions(func(options *manager.Options) {
			options.WebhookServer = server
			options.Metrics.ExtraHandlers = map[string]http.Handler{"/about": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "widgets")
			})}
		}),
		einmal.SetupManager(func(mgr manager.Manager) error {
			return ctrl.NewWebhookManagedBy(mgr, &fixture.Widget{}).WithValidator(smallOnly{}).Complete()
		}),
		einmal.SetupManager(func(mgr manager.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).Named(namespace).For(&fixture.Widget{}).
				Complete(reconcile.Func(func(_ context.Context, one reconcile.Request) (reconcile.Result, error) {
					reconciled <- one.Name
					return reconcile.Result{}, nil
				}))
		}),
	)
	einmal.For[fixture.Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Object.Status.Phase = "made"
		return nil
	})
	fixture.Run(t, op, w.account, einmal.RunOptions{SingleReplica: true, MetricsAddress: shown})
	configured := validation(namespace, reached)
	fixture.Must(t, w.Create(t.Context(), configured))
	defer func() { fixture.Must(t, w.Delete(t.Context(), configured)) }()

	large := fixture.NewUntypedWidget("large")
	large.SetNamespace(namespace)
	fixture.Must(t, unstructured.SetNestedField(large.Object, int64(11), "spec", "size"))
	cluster.Eventually(t, "the webhook rejects a large widget", func(ctx context.Context) error {
		err := w.Create(ctx, large, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "spec.size must be at most 10") {
			return fmt.Errorf("the creation returns: %w", err)
		}
		return nil
	})
	small := fixture.NewUntypedWidget("small")
	small.SetNamespace(namespace)
	fixture.Must(t, w.Create(t.Context(), small))
	cluster.Eventually(t, "the handler runs", func(ctx context.Context) error {
		err := w.Get(ctx, client.ObjectKeyFromObject(small), small)
		if phase, _, _ := unstructured.NestedString(small.Object, "status", "phase"); err == nil && phase != "made" {
			err = fmt.Errorf("the phase is %q", phase)
		}
		return err
	})
	cluster.Eventually(t, "the reconciler runs", func(context.Context) error {
		select {
		case <-reconciled:
			return nil
		default:
			return errors.New("it has not been called")
		}
	})
	answers(t, "http://"+shown+"/about", http.StatusOK, "widgets")
	fixture.Must(t, w.Delete(t.Context(), small))
}
