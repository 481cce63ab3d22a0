package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// The operator runs with the roles of its manifests: it reads Secrets next to itself, and keeps credentials in one namespace. For other
// namespaces the condition names the namespace, and a Role there is enough. An open user default of a cache is reported too. A deletion finds
// by their marks also resources that nothing lists any more.
func TestTheOperatorReachesTheSecretsThatItNeeds(t *testing.T) {
	t.Parallel()
	s := startStage(t)
	s.program, s.metrics = quick(t), freeAddress(t)
	running := s.start(t)
	s.awaitBackend(t, "local", v1.ConditionReady, "True Reached", "")
	s.awaitBackend(t, "local", v1.ConditionUsersSaved, "True Saved", "")
	t.Run("Secrets of another namespace", s.secretsElsewhere)
	t.Run("a user default without a password", s.openDefault)
	t.Run("an app that was taken out", s.takenOut)
	t.Run("a Secret that cannot be written", s.frozen)
	t.Run("a leaked credential of a cache with faults", s.leaks)
	t.Run("admin Secrets that are written wrongly", func(t *testing.T) { s.hides(t, running) })
}

// awaitBackend waits until a condition of a backend is so, with a message that names something.
func (s *stage) awaitBackend(t *testing.T, name, condition, want, mentioned string) {
	t.Helper()
	einmaltest.Eventually(t, name+" is "+want, func(ctx context.Context) error {
		backend := &v1.TenantBackend{}
		if err := s.Get(ctx, client.ObjectKey{Name: name}, backend); err != nil {
			return err
		}
		found := meta.FindStatusCondition(backend.Status.Conditions, condition)
		if found == nil || string(found.Status)+" "+found.Reason != want || !strings.Contains(found.Message, mentioned) {
			return fmt.Errorf("it has the conditions %+v", backend.Status.Conditions)
		}
		return nil
	})
}

// elsewhere is what a person adds for credentials in another namespace, which it is given.
const elsewhere = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: %[1]s}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, create, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{kind: ServiceAccount, name: tenant, namespace: tenant-system}]
`

func (s *stage) secretsElsewhere(t *testing.T) {
	s.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
	s.make(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "postgres-admin"}, StringData: map[string]string{"dsn": s.postgres.AdminDSN()},
	})
	stolen := &v1.TenantBackend{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}, Spec: s.local().Spec}
	stolen.Spec.Postgres.DSNSecretRef.Namespace = "elsewhere"
	s.make(t, stolen)
	s.awaitBackend(t, "stolen", v1.ConditionReady, "False AdminLacksRights", "elsewhere/postgres-admin")
	kept := &v1.TenantBackend{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}, Spec: s.local().Spec}
	kept.Spec.Store.Secret.Namespace = "elsewhere"
	s.make(t, kept)
	s.backend = "elsewhere"
	defer func() { s.backend = "local" }()
	s.Kubectl(t, s.manifest("away", ", credentials: {probeInterval: 10s}"), "apply", "-f", "-")
	s.await(t, "away", "without its credentials", func(of *v1.Tenant) bool {
		return of.Status.Phase == v1.Blocked && condition(of, v1.ConditionReady) == "False AdminLacksRights"
	})
	s.Kubectl(t, fmt.Sprintf(elsewhere, "elsewhere"), "apply", "-f", "-")
	s.awaitPhase(t, "away", v1.Ready)
}

func (s *stage) openDefault(t *testing.T) {
	s.as(t, "ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all")
	s.touch(t, "the cache is open")
	s.awaitBackend(t, "local", v1.ConditionReady, "False DefaultUserOpen", "ACL SETUSER default off")
	s.as(t, "ACL", "SETUSER", "default", "off")
	s.touch(t, "the cache is closed")
	s.awaitBackend(t, "local", v1.ConditionReady, "True Reached", "")
}

// frozen rotates in place while the Secrets of readers are immutable: what they have stays accepted, and the message says what to do.
func (s *stage) frozen(t *testing.T) {
	const more = ", credentials: {probeInterval: 10s, rotation: {requestId: %s, strategy: InPlace}}"
	s.Kubectl(t, s.manifest("frozen", fmt.Sprintf(more, "one")), "apply", "-f", "-")
	s.awaitPhase(t, "frozen", v1.Ready)
	of := names.Tenant{Name: "frozen"}.App("web")
	for _, secret := range []string{of.DatabaseSecret(), of.CacheSecret()} {
		s.Kubectl(t, "", "patch", "secret", "-n", credentialsNamespace, secret, "--patch", `{"immutable": true}`)
	}
	s.Kubectl(t, s.manifest("frozen", fmt.Sprintf(more, "two")), "apply", "-f", "-")
	blocked := s.await(t, "frozen", "blocked", func(of *v1.Tenant) bool { return condition(of, v1.ConditionReady) == "False CannotPublish" })
	said := blocked.Status.Apps[0].Database.Problem
	if !blocked.Status.DBReady || !blocked.Status.RedisReady || !strings.Contains(said, of.DatabaseSecret()+" is immutable") || !strings.Contains(said, "delete it") {
		t.Errorf("database ready: %t, cache ready: %t, problem: %s", blocked.Status.DBReady, blocked.Status.RedisReady, said)
	}
	s.works(t, "frozen")
	s.Kubectl(t, "", "delete", "secrets", "-n", credentialsNamespace, of.DatabaseSecret(), of.CacheSecret())
	s.await(t, "frozen", "rotated", func(of *v1.Tenant) bool {
		return of.Status.Phase == v1.Ready && of.Status.Apps[0].Database.Generation == 2
	})
	s.works(t, "frozen")
}

func (s *stage) takenOut(t *testing.T) {
	s.Kubectl(t, s.manifest("gone", ""), "apply", "-f", "-")
	s.awaitPhase(t, "gone", v1.Ready)
	old := names.Tenant{Name: "gone"}.App("web")
	cache := s.stored(t, old.CacheSecret())
	taken := strings.Replace(s.manifest("gone", ", deletionPolicy: Delete, dropOwned: true"), "{name: web}", "{name: other}", 1)
	s.Kubectl(t, strings.Replace(taken, "Delete", "Retain", 1), "apply", "-f", "-")
	s.await(t, "gone", "without the app", func(of *v1.Tenant) bool {
		return of.Status.Phase == v1.Ready && len(of.Status.Apps) == 1 && of.Status.Apps[0].Name == "other"
	})
	if err := s.authenticate(t, cache, "gone:x"); err != nil {
		t.Fatalf("the app that was taken out is not kept: %v", err)
	}
	s.Kubectl(t, taken, "apply", "-f", "-")
	s.awaitPhase(t, "gone", v1.Ready)
	s.Kubectl(t, "", "delete", "tenant", "gone", "--timeout=60s")
	if err := s.authenticate(t, cache, "gone:x"); err == nil {
		t.Error("after the deletion, the credential of the app that was taken out opens the cache")
	}
	if left := s.secretsOf(t, "gone"); len(left) > 0 {
		t.Errorf("the Secrets %v are left", left)
	}
}
