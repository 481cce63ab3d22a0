package einmaltest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// definitionOf is a CustomResourceDefinition of a kind.
func definitionOf(kind string) *unstructured.Unstructured {
	plural := strings.ToLower(kind) + "s"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".left.example.com"},
		"spec": map[string]any{
			"group": "left.example.com", "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}}
}

// afterAFailure sets something outside of the cluster, so that an attempt can fail, and does something else in later attempts alone.
func afterAFailure(do func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error, options ...einmal.OperatorOption) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		w.FillNamespaces()
		configHandled(func(ctx context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
			if c.Attempt > 1 {
				if err := do(ctx, c); err != nil {
					return err
				}
			}
			return p.IdempotentEffect("set "+c.Object.Name, func() (any, error) { return nil, nil })
		}, options...)(w)
	}
}

// Every object is compared: those of all kinds, those that the world begins with, and the values in Secrets.
func TestWhateverIsLeftIsCompared(t *testing.T) {
	definitions := &unstructured.Unstructured{}
	definitions.SetAPIVersion("apiextensions.k8s.io/v1")
	definitions.SetKind("CustomResourceDefinition")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	for _, test := range []struct {
		name     string
		scenario einmaltest.Scenario
		says     string
	}{
		{"a Lease", afterAFailure(func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			return client.IgnoreAlreadyExists(c.Client.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "left"}}))
		}, einmal.Permissions(&coordinationv1.Lease{}, "create")), "Lease.coordination.k8s.io default/left: it is not there when nothing goes wrong"},
		{"a CustomResourceDefinition", afterAFailure(func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			return client.IgnoreAlreadyExists(c.Client.Create(ctx, definitionOf("Thing")))
		}, einmal.Permissions(definitions, "create")), "CustomResourceDefinition.apiextensions.k8s.io /things.left.example.com: it is not there"},
		{"a Namespace that the world begins with", afterAFailure(func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			return client.IgnoreNotFound(c.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-node-lease"}}))
		}, einmal.Permissions(&corev1.Namespace{}, "delete")), "Namespace /kube-node-lease: it is missing"},
		{"a ServiceAccount that each namespace has", afterAFailure(func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			return c.Client.Patch(ctx, account.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"automountServiceAccountToken":false}`)))
		}, einmal.Permissions(&corev1.ServiceAccount{}, "patch")), "ServiceAccount default/default: what is left differs"},
		{"a value in a Secret that is as long as the other", configHandled(func(ctx context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
			if err := p.IdempotentEffect("set "+c.Object.Name, func() (any, error) { return nil, nil }); err != nil {
				return err
			}
			return client.IgnoreAlreadyExists(c.Client.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Object.Name}, StringData: map[string]string{"user": fmt.Sprintf("user-%d", c.Attempt)},
			}))
		}, einmal.Permissions(&corev1.Secret{}, "create")), "Secret default/one, user: it holds another value than without faults"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			finding := einmaltest.Search(t, test.scenario, einmaltest.Only(einmaltest.Answers))
			if finding == nil || !strings.Contains(finding.String(), test.says) {
				t.Errorf("the finding is %v, want %q", finding, test.says)
			}
		})
	}
}

// What the namespace controller makes again is as before, although it has another uid.
func TestWhatTheNamespaceControllerMakesAgainIsTheSame(t *testing.T) {
	scenario := afterAFailure(func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
		return client.IgnoreNotFound(c.Client.Delete(ctx, account))
	}, einmal.Permissions(&corev1.ServiceAccount{}, "delete"))
	if finding := einmaltest.Search(t, scenario, einmaltest.Only(einmaltest.Answers)); finding != nil {
		t.Errorf("the finding is %v", finding)
	}
}
