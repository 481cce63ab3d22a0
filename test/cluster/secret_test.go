package cluster_test

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// On a real control plane, under an account of its own: the operator waits for the permission to create the key, and nothing is leaked.
func TestSecretsOnARealControlPlane(t *testing.T) {
	w := sharedWorld(t)
	v := &fixture.Vault{Journal: &fixture.Journal{}, Namespace: w.Namespace(t, "secrets-")}
	w.DeleteAllAtEnd(t, w.Client, &corev1.SecretList{}, client.InNamespace(v.Namespace)) // The Secret has a finalizer.
	account := w.Account(t, "vault",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}})
	run := func() (stop func(), log *fixture.Log) {
		log = fixture.NewLog(t)
		op := einmal.New(fixture.Identity, einmal.StateNamespace(v.Namespace), einmal.Namespaces(v.Namespace),
			einmal.Logger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		v.Declare(op)
		return w.run(t, op, account), log
	}
	stop, log := run()
	cluster.Until(t, "it says what it may not do", func() bool { return log.Count("error~verbs get and create on secrets") > 0 })
	role := &rbacv1.ClusterRole{}
	if err := w.Get(t.Context(), types.NamespacedName{Name: "vault"}, role); err != nil {
		t.Fatal(err)
	}
	role.Rules[0].Verbs = append(role.Rules[0].Verbs, "create")
	if err := w.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fixture.SecretName, Namespace: v.Namespace}, StringData: map[string]string{"password": "first-password"},
	}
	if err := w.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	calls := []string{"make (create, attempt 1)"}
	created := w.vaulted(t, v, calls...)
	stop()
	v.HiddenIn(t, created, log.String(), "first-password")
	stop, log = run()
	calls = append(calls, "greet (resume, attempt 1)")
	if resumed := w.vaulted(t, v, calls...); resumed.ResourceVersion != created.ResourceVersion {
		t.Error("a restart wrote to the Secret")
	}
	if err := w.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(fixture.RotatedTo("second-password")))); err != nil {
		t.Fatal(err)
	}
	changed := w.vaulted(t, v, append(calls, "rotate (update, attempt 1)", "own")...)
	stop()
	v.HiddenIn(t, changed, log.String(), "first-password", "second-password")
	if string(changed.Data["seen"]) != "of second-password" {
		t.Errorf("the handler's own data is not there: %d entries", len(changed.Data))
	}
}
