package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/einmal-operators/einmal"
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

// The watch knows the versions of Secrets, and reports when it does not.
func TestTheWatchKnowsTheVersionsOfSecrets(t *testing.T) {
	t.Parallel()
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Install(func(*einmaltest.Process) *einmal.Operator { return declare(&backends{}) })
		watches := &secretWatches{}
		defer watches.stop()
		watched := watches.in(w.Context(), w.Client(), "default")
		if again := watches.in(w.Context(), w.Client(), "default"); again != watched {
			w.Error("a namespace is watched twice")
		}
		if elsewhere := watches.in(w.Context(), withoutWatch{w.Client()}, "kube-system"); elsewhere != nil {
			w.Error("a client that cannot watch is used for a watch")
		}
		knows(w, watched)
		for _, name := range []string{"a.web.db", "a.web.db.g1", "a.web.db.g12", "a.web.cache", "b.web.db"} {
			w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		}
		before := knows(w, watched, "a.web.db", "a.web.db.g1", "a.web.db.g12")
		w.Patch(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a.web.db"}}, `{"stringData":{"x":"y"}}`)
		after := knows(w, watched, "a.web.db", "a.web.db.g1", "a.web.db.g12")
		if before["a.web.db"] == after["a.web.db"] || before["a.web.db.g1"] != after["a.web.db.g1"] {
			w.Errorf("after a change of the first Secret the versions are %v, were %v", after, before)
		}
		watches.stop()
		if _, known := watched.versions([]string{"a.web.db"}); known {
			w.Error("a watch that has ended returns versions")
		}
	})
}

// withoutWatch is a client that cannot watch.
type withoutWatch struct{ client.Client }

// knows expects, a second later, that the versions of the record a.web.db are those of the given Secrets, and returns them.
func knows(w *einmaltest.World, watched *secretWatch, want ...string) map[string]string {
	w.Helper()
	w.Advance(time.Second)
	versions, known := watched.versions([]string{"a.web.db"})
	if got := slices.Sorted(maps.Keys(versions)); !known || !slices.Equal(got, want) {
		w.Errorf("known: %t, the Secrets %v, want %v: %v", known, got, want, watched.trouble())
	}
	return versions
}

// Where Secrets may not be watched, no versions are known, so that each look is a full look.
func TestARefusedWatchKnowsNothing(t *testing.T) {
	t.Parallel()
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Install(func(*einmaltest.Process) *einmal.Operator { return declare(&backends{}) })
		able, ok := w.Client().(client.WithWatch)
		if !ok {
			w.Fatal("the client cannot watch")
		}
		forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("it has no rights"))
		watches := &secretWatches{}
		defer watches.stop()
		watched := watches.in(w.Context(), interceptor.NewClient(able, interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return forbidden
			},
			Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
				return nil, forbidden
			},
		}), "default")
		w.Advance(time.Minute)
		if trouble := watched.trouble(); !errors.Is(trouble, forbidden) {
			w.Errorf("the trouble is %v, want the answer of the API server", trouble)
		}
		if _, known := watched.versions(nil); known {
			w.Error("the versions are known")
		}
	})
}
