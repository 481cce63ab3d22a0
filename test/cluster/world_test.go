package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// vaulted waits until exactly these calls were made and recorded, and makes sure that there are no others.
func (w *world) vaulted(t *testing.T, v *fixture.Vault, want ...string) *corev1.Secret {
	t.Helper()
	cluster.Eventually(t, "calls", func(context.Context) error {
		if got := v.Journal.Of(fixture.SecretName); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
	found := &corev1.Secret{}
	unchanged(t, "versions of the Secret", func() string {
		if err := w.Get(t.Context(), types.NamespacedName{Namespace: v.Namespace, Name: fixture.SecretName}, found); err != nil {
			t.Fatal(err)
		}
		return found.ResourceVersion
	})
	if got := v.Journal.Of(fixture.SecretName); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	return found
}

// world is a real control plane with the kinds of these tests, and an account for their operators.
type world struct {
	*cluster.Cluster
	account *rest.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOn(t, cluster.Start(t), string(fixture.CRDs()))
}

// sharedWorld is a control plane that other packages use too, with the kind Widget only. The tests that use it run one after the other.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	widgets, _, _ := strings.Cut(string(fixture.CRDs()), "\n---\n")
	return worldOn(t, cluster.Shared(t), widgets)
}

func worldOn(t *testing.T, on *cluster.Cluster, definitions string) *world {
	t.Helper()
	w := &world{Cluster: on}
	w.Kubectl(t, definitions, "apply", "-f", "-")
	w.Kubectl(t, definitions, "wait", "--for=condition=Established", "-f", "-")
	w.account = w.Account(t, "operator", kindRules()...)
	return w
}

// kindRules are what an operator of the test kinds needs.
func kindRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{fixture.Group},
		Resources: []string{"widgets", "widgets/status", "gadgets", "gadgets/status"},
		Verbs:     []string{"get", "list", "watch", "patch"},
	}}
}

// operator runs an operator under its own account and returns what stops it. It is stopped at the end of the test in
// any case, and must stop without an error.
func (w *world) operator(t *testing.T, use fixture.Carrier, plan fixture.Plan) (stop func()) {
	t.Helper()
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(fixture.NewLog(t), nil))))
	use.Declare(op, plan)
	return w.run(t, op, w.account)
}

func (w *world) run(t *testing.T, op *einmal.Operator, account *rest.Config) (stop func()) {
	t.Helper()
	return fixture.Run(t, op, account, einmal.RunOptions{SingleReplica: true})
}

// get reads an object of the carrier's kind.
func (w *world) get(ctx context.Context, use fixture.Carrier, name string) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(fixture.Group + "/v1")
	found.SetKind(use.Kind)
	err := w.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, found)
	return found, err
}

// called waits until exactly these calls were made for the object and its record is written; then it makes sure that
// nothing more is written.
func (w *world) called(t *testing.T, use fixture.Carrier, j *fixture.Journal, name string, want ...string) {
	t.Helper()
	cluster.Eventually(t, "calls for "+name, func(ctx context.Context) error {
		if got := j.Of(name); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		found, err := w.get(ctx, use, name)
		if err == nil && use.Record(found) == "" {
			err = fmt.Errorf("%s has no record", name)
		}
		return err
	})
	w.quiet(t, use)
	if got := j.Of(name); !slices.Equal(got, want) {
		t.Errorf("calls for %s: got %q, want %q", name, got, want)
	}
}

// quiet waits until nothing was written to the carrier's kind for half a second.
func (w *world) quiet(t *testing.T, use fixture.Carrier) {
	t.Helper()
	unchanged(t, "writes of "+use.Resource, func() int { return w.Writes(t, use.Resource) })
}

// unchanged waits until a value stays the same for half a second.
func unchanged[T comparable](t *testing.T, what string, read func() T) {
	t.Helper()
	last, since := read(), time.Now()
	cluster.Until(t, what+" stay the same", func() bool {
		if now := read(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}
