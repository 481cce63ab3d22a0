package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// drift is what happens to a tenant at rest, and what shows that the operator has put it right.
type drift struct {
	// looks is how many looks it may take until a full look follows.
	looks int
	do    func(t *testing.T, tenant string)
	right func(t *testing.T, tenant string) error
}

// TestATenantAtRestIsPutRight shows that quick checks hide nothing: whatever changes at a tenant at rest is found in time, and the credentials stay.
func TestATenantAtRestIsPutRight(t *testing.T) {
	t.Parallel()
	m := startMeter(t)
	all := m.drifts()
	for name := range all {
		m.Kubectl(t, m.manifestOfTwo(name, "10s"), "apply", "-f", "-")
	}
	before := map[string]map[string]string{}
	for name := range all {
		m.awaitPhase(t, name, v1.Ready)
	}
	m.waitLooks(t, 3*len(all)) // From the second look of each on there are quick checks.
	maps.Copy(before, m.records(t))
	for name, one := range all {
		looks := m.looksOf(name)
		if looks < 2 {
			t.Fatalf("%s: only %d looks are logged", name, looks)
		}
		one.do(t, name)
		einmaltest.Eventually(t, name+" is put right", func(context.Context) error { return one.right(t, name) })
		if took := m.looksOf(name) - looks; took > one.looks+1 {
			t.Errorf("%s: it took %d looks, want at most %d", name, took, one.looks)
		}
	}
	for name, data := range m.records(t) {
		if strings.HasSuffix(name, ".g1") && before[name]["password"] != data["password"] || data[credential.GenerationKey] != "1" {
			t.Errorf("the credential %s is another", name)
		}
	}
}

// looksOf is how many looks at a tenant have ended.
func (m *meter) looksOf(tenant string) int {
	return strings.Count(m.running.Log(), `waits" kind=Tenant object=/`+tenant+" ")
}

// drifts are what happens to tenants, by their names. Each tenant has two apps: what takes a connection of its own has its turn in three looks.
func (m *meter) drifts() map[string]drift {
	return map[string]drift{
		"password": {3, func(t *testing.T, tenant string) {
			t.Helper()
			m.sql(t, "ALTER ROLE "+loginOfWeb(tenant)+" PASSWORD 'by-hand'")
		}, m.letsIn},
		"limit": {1, func(t *testing.T, tenant string) {
			t.Helper()
			m.sql(t, "ALTER ROLE "+loginOfWeb(tenant)+" NOLOGIN")
		}, m.letsIn},
		"deleted": {1, func(t *testing.T, tenant string) {
			t.Helper()
			m.change(t, webOf(tenant).DatabaseSecret(), m.Delete)
		}, m.published},
		"changed": {1, func(t *testing.T, tenant string) {
			t.Helper()
			m.change(t, webOf(tenant).DatabaseSecret(), func(ctx context.Context, object client.Object, _ ...client.DeleteOption) error {
				object.(*corev1.Secret).Data[credential.PasswordKey] = []byte("by-hand") //nolint:forcetypeassert // It is one.
				return m.Update(ctx, object)
			})
		}, m.published},
		"cache": {1, func(t *testing.T, tenant string) {
			t.Helper()
			m.as(t, "ACL", "SETUSER", webOf(tenant).RedisUser(), "resetpass", ">by-hand")
		}, func(t *testing.T, tenant string) error {
			t.Helper()
			return m.authenticate(t, m.stored(t, webOf(tenant).CacheSecret()), tenant+":x")
		}},
		"status": {1, func(t *testing.T, tenant string) {
			t.Helper()
			m.Kubectl(t, `{"status": {"apps": null}}`, "patch", "tenant", tenant, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin")
		}, func(t *testing.T, tenant string) error {
			t.Helper()
			found := &v1.Tenant{}
			if err := m.Get(t.Context(), client.ObjectKey{Name: tenant}, found); err != nil || len(found.Status.Apps) == 2 {
				return err
			}
			return errors.New("the status has no apps")
		}},
	}
}

func webOf(tenant string) names.App { return names.Tenant{Name: tenant}.App("web") }

func loginOfWeb(tenant string) string { return webOf(tenant).Login(1) }

// letsIn is nil if the app web can log in to the database.
func (m *meter) letsIn(t *testing.T, tenant string) error {
	t.Helper()
	return m.logIn(t, tenant, m.stored(t, webOf(tenant).DatabaseSecret()))
}

// change does something with a Secret.
func (m *meter) change(t *testing.T, name string, do func(context.Context, client.Object, ...client.DeleteOption) error) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := m.Get(t.Context(), client.ObjectKey{Namespace: credentialsNamespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	if err := do(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// published is nil if readers of the credential of the app web get its first generation.
func (m *meter) published(t *testing.T, tenant string) error {
	t.Helper()
	records := m.records(t)
	name := webOf(tenant).DatabaseSecret()
	if is, want := records[name][credential.PasswordKey], records[name+".g1"][credential.PasswordKey]; is != want || want == "" {
		return fmt.Errorf("readers of %s do not get generation 1", name)
	}
	return nil
}

// The watch knows the versions of Secrets, and says when it does not.
func TestTheWatchKnowsTheVersionsOfSecrets(t *testing.T) {
	t.Parallel()
	cluster := einmaltest.SharedCluster(t)
	namespace := cluster.Namespace(t, "watch-")
	api, err := client.NewWithWatch(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	watches := &secretWatches{}
	t.Cleanup(watches.stop)
	watched := watches.in(t.Context(), api, namespace)
	if again := watches.in(t.Context(), api, namespace); again != watched {
		t.Error("a namespace is watched twice")
	}
	if elsewhere := watches.in(t.Context(), cluster.Client, "kube-system"); elsewhere != nil {
		t.Error("a client that cannot watch is used for a watch")
	}
	expect := func(what string, want ...string) {
		t.Helper()
		einmaltest.Eventually(t, what, func(context.Context) error {
			versions, known := watched.versions([]string{"a.web.db"})
			if got := slices.Sorted(maps.Keys(versions)); !known || !slices.Equal(got, want) {
				return fmt.Errorf("known: %t, the Secrets %v, want %v: %w", known, got, want, watched.trouble())
			}
			return nil
		})
	}
	expect("nothing is there")
	for _, name := range []string{"a.web.db", "a.web.db.g1", "a.web.db.g12", "a.web.cache", "b.web.db"} {
		if err := cluster.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	expect("all Secrets of the record are there", "a.web.db", "a.web.db.g1", "a.web.db.g12")
	before, _ := watched.versions([]string{"a.web.db"})
	changed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a.web.db"}, StringData: map[string]string{"x": "y"}}
	if err := cluster.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	einmaltest.Eventually(t, "the change is seen", func(context.Context) error {
		if now, known := watched.versions([]string{"a.web.db"}); !known || maps.Equal(now, before) {
			return errors.New("it is not")
		}
		return nil
	})
	watches.stop()
	if _, known := watched.versions([]string{"a.web.db"}); known {
		t.Error("a watch that has ended says that it knows the versions")
	}
}

// Where Secrets may not be watched, no versions are known, so that each look is a full look.
func TestARefusedWatchKnowsNothing(t *testing.T) {
	t.Parallel()
	cluster := einmaltest.SharedCluster(t)
	config := cluster.Config()
	config.Impersonate.UserName = "user-without-rights"
	api, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	watches := &secretWatches{}
	t.Cleanup(watches.stop)
	watched := watches.in(t.Context(), api, "default")
	einmaltest.Eventually(t, "the watch reports that it is forbidden", func(context.Context) error {
		if trouble := watched.trouble(); trouble == nil || !strings.Contains(trouble.Error(), "forbidden") {
			return fmt.Errorf("the trouble is: %w", trouble)
		}
		return nil
	})
	if _, known := watched.versions(nil); known {
		t.Error("the versions are known")
	}
}
