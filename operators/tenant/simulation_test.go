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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// life is the operator of tenants in a simulated world, with a database, a cache and a backend.
type life struct {
	*einmaltest.World

	outside *outside
	// seen are the records that were stored, as they were when they were seen first.
	seen map[string]map[string]string
}

// kept is the tenant that stays, credentials the namespace of credentials, overlap how long the one before a rotation is accepted, and pause a time after which what was asked
// for is done, even if the operator was down for five minutes.
const (
	kept        = "acme"
	credentials = credentialsNamespace
	overlap     = 10 * time.Minute
	pause       = 6 * time.Minute
)

func sameStore(store credential.Store) credential.Store { return store }

// begin starts the operator, whose store is made of that of Secrets. Its backend names no servers, so that it is not tried what goes wrong at each
// look at their Secrets.
func begin(w *einmaltest.World, wrap func(credential.Store) credential.Store) *life {
	l := &life{World: w, seen: map[string]map[string]string{}, outside: newOutside()}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		return declare(&backends{connect: session{l.outside, p}.connect(wrap)})
	})
	l.Apply(`{apiVersion: v1, kind: Namespace, metadata: {name: tenant-credentials}}`)
	l.Apply(`{apiVersion: tenant.einmal.dev/v1, kind: TenantBackend, metadata: {name: local}, spec: {clusterId: here,
		store: {kind: Secret, secret: {namespace: tenant-credentials}}}}`)
	l.Advance(time.Minute) // A change of its status would wake the tenants.
	return l
}

// ask applies a tenant, as its user does. Its passwords are not tried again by the clock: when that is depends on chance.
func (l *life) ask(name, request, more string) {
	l.Helper()
	l.Apply(fmt.Sprintf(`{apiVersion: tenant.einmal.dev/v1, kind: Tenant, metadata: {name: %s}, spec: {backendRef: {name: local}, apps: [{name: web}],
		credentials: {probeInterval: 24h, rotation: {overlap: 10m, requestId: %q}}, %s}}`, name, request, more))
}

// has expects that a tenant has so many generations of each credential, none of which ever changed, that readers get the last one, that it is
// accepted, and that no client was locked out so far.
func (l *life) has(tenant string, generations int) {
	l.Helper()
	for record, in := range records(names.Tenant{Name: tenant}.App("web")) {
		last := l.generations(record, generations)
		read := l.stored(record)
		delete(read, credential.PublishedKey)
		if last == nil || !maps.Equal(read, last) {
			l.Errorf("readers of %s do not get generation %d", record, generations)
			continue
		}
		if !l.outside.users[in].Accepts(loginOf(last)) {
			l.Errorf("generation %d of %s is not accepted", generations, record)
		}
	}
	for _, broken := range l.outside.complaints() {
		l.Errorf("%s", broken)
	}
}

// generations expects so many generations of a record, as they were first, and returns the last one.
func (l *life) generations(record string, many int) map[string]string {
	l.Helper()
	var last map[string]string
	for n := 1; n <= many; n++ {
		name := fmt.Sprintf("%s.g%d", record, n)
		last = l.stored(name)
		if l.seen[name] == nil {
			l.seen[name] = last
		}
		if last == nil || !maps.Equal(last, l.seen[name]) {
			l.Errorf("%s is not there, or is another than it was", name)
		}
	}
	if more := l.stored(fmt.Sprintf("%s.g%d", record, many+1)); more != nil {
		l.Errorf("%s has more than %d generations", record, many)
	}
	return last
}

// records are the records of an app, with the system that its users are in.
func records(of names.App) map[string]system {
	return map[string]system{of.DatabaseSecret(): database, of.CacheSecret(): caching}
}

// loginOf returns the credential in a Secret.
func loginOf(held map[string]string) credential.Record {
	return credential.Record{Username: held[credential.UsernameKey], Password: credential.NewPassword(held[credential.PasswordKey])}
}

// stored is what a Secret has; nil if there is none.
func (l *life) stored(name string) map[string]string {
	l.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentials, Name: name}}
	if !l.Get(secret) {
		return nil
	}
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data
}

// promise expects from now on that a generation of the kept tenant's credentials is accepted, until readers have got what they get now for so long.
func (l *life) promise(generation int, during time.Duration) {
	l.Helper()
	for record, in := range records(names.Tenant{Name: kept}.App("web")) {
		held := l.stored(fmt.Sprintf("%s.g%d", record, generation))
		since, err := time.Parse(time.RFC3339, l.stored(record)[credential.PublishedKey])
		if err != nil {
			l.Errorf("%s does not say since when readers get it: %v", record, err)
		}
		l.outside.users[in].Promise(loginOf(held), since.Add(during))
	}
}

// refused expects that the first credentials of the kept tenant are not accepted any more.
func (l *life) refused() {
	l.Helper()
	for record, in := range records(names.Tenant{Name: kept}.App("web")) {
		first := l.stored(record + ".g1")
		if l.outside.users[in].Accepts(loginOf(first)) {
			l.Errorf("the first record of %s is accepted after the overlap", record)
		}
	}
}

// only expects that there are these things outside of the cluster, and credentials of the kept tenant.
func (l *life) only(want []string) {
	l.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, l.outside.there()); diff != "" {
		l.Errorf("outside there is (-want +got):\n%s", diff)
	}
	var secrets corev1.SecretList
	if err := l.Client().List(l.Context(), &secrets, client.InNamespace(credentials)); err != nil {
		l.Fatal(err)
	}
	for _, secret := range secrets.Items {
		tenant, _, is := strings.Cut(secret.Name, ".")
		if is && tenant != kept {
			l.Errorf("there is the Secret %s", secret.Name)
		}
	}
}

// all is what a tenant with an app has outside of the cluster, after some generations.
func all(tenant string, generations int) []string {
	of := names.Tenant{Name: tenant}
	app := of.App("web")
	made := []string{"role " + of.Owner(), "role " + of.ReadWrite(), "database of " + of.Database(), "cache " + app.RedisUser()}
	for n := range generations {
		made = append(made, "database "+app.Login(n+1))
	}
	return made
}

// forever is how long credentials are accepted of which no others were asked for.
const forever = 1000 * time.Hour

// begun begins with a tenant that stays, whose first credentials are promised to be accepted.
func begun(w *einmaltest.World) *life {
	l := begin(w, sameStore)
	l.ask(kept, "", "plan: standard")
	l.Advance(pause)
	l.has(kept, 1)
	l.promise(1, forever)
	return l
}

// keptTenant is a tenant whose deletionPolicy is Retain: it gets another plan, and is deleted and made again.
func keptTenant(w *einmaltest.World) {
	l := begun(w)
	l.ask(kept, "", "plan: premium")
	l.Advance(pause)
	l.has(kept, 1)
	l.Delete(&v1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: kept}})
	l.Advance(pause)
	l.ask(kept, "", "plan: premium")
	l.Advance(pause)
	l.has(kept, 1)
	l.only(all(kept, 1))
	l.Outcome("limits", l.outside.users[database].Granted(names.Tenant{Name: kept}.App("web").Login(1)))
}

// rotatedTenant is a tenant whose credentials are rotated once. In the overlap what the status says is lost, and the operator restarts.
func rotatedTenant(w *einmaltest.World) {
	l := begun(w)
	l.ask(kept, "spring", "plan: standard")
	l.Advance(overlap - 4*time.Minute)
	l.has(kept, 2)
	l.promise(1, overlap)
	l.promise(2, forever)
	tenant := &v1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: kept}}
	lost := client.RawPatch(types.MergePatchType, []byte(`{"status":{"apps":null,"conditions":null,"phase":null,"plan":null}}`))
	if err := l.Client().Status().Patch(l.Context(), tenant, lost); err != nil {
		l.Fatal(err)
	}
	l.Restart()
	l.Advance(overlap + pause)
	l.has(kept, 2)
	l.refused()
	l.only(all(kept, 2))
}

// removedTenant is a tenant whose deletionPolicy is Delete: nothing is left of it, and its neighbour is let in on.
func removedTenant(w *einmaltest.World) {
	l := begun(w)
	l.ask("gone", "", "deletionPolicy: Delete, dropOwned: true")
	l.Advance(pause)
	l.has("gone", 1)
	gone := &v1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
	l.Delete(gone)
	l.Advance(pause)
	l.has(kept, 1)
	l.only(all(kept, 1))
	if l.Get(gone) {
		l.Errorf("the tenant is still there")
	}
}

// onlyCrashes leaves out what has to do with neither systems outside nor the store: it is explored with the framework itself.
func onlyCrashes(more ...einmaltest.Dimension) einmaltest.Option {
	return einmaltest.Without(append(more, einmaltest.Answers, einmaltest.Outages, einmaltest.Events, einmaltest.OtherWriters, einmaltest.Clocks,
		einmaltest.Standby)...)
}

// Whatever goes wrong, and whenever, a tenant has the credentials that were
// asked for, none is generated twice or replaced, who was let in is let in until the overlap of a rotation has ended, and nothing is left of a
// tenant with the deletionPolicy Delete. In these runs the finalizer is never removed by force, because that would skip the cleanup.
func TestWhateverGoesWrongTenantsKeepTheirCredentials(t *testing.T) {
	t.Parallel()
	t.Run("a tenant that is kept", func(t *testing.T) { einmaltest.Explore(t, keptTenant, onlyCrashes()) })
	t.Run("a tenant that is rotated", func(t *testing.T) { einmaltest.Explore(t, rotatedTenant, onlyCrashes(einmaltest.Wipes)) })
	t.Run("a tenant that is removed", func(t *testing.T) { einmaltest.Explore(t, removedTenant, onlyCrashes(einmaltest.Wipes)) })
}

// forgetful is a store as the articles have it: it has a credential when readers get it, and what it creates is put over what is there.
type forgetful struct{ credential.Store }

func (s forgetful) Read(ctx context.Context, name string, owner credential.Owner, from int) (credential.Found, error) {
	found, err := s.Store.Read(ctx, name, owner, from)
	if found.Published == 0 {
		return credential.Found{}, err
	}
	return found, err
}

func (s forgetful) Create(ctx context.Context, name string, owner credential.Owner, record credential.Record) error {
	err := s.Store.Create(ctx, name, owner, record)
	if !errors.Is(err, credential.ErrExists) {
		return err
	}
	if err := s.Store.Delete(ctx, name, owner); err != nil {
		return err
	}
	return s.Store.Create(ctx, name, owner, record)
}

// The negative control: with a store that is not create-only, in an operator that generates what is missing, the first crash has a credential
// generated twice.
func TestAStoreThatOverwritesIsFound(t *testing.T) {
	t.Parallel()
	finding := einmaltest.Search(t, func(w *einmaltest.World) {
		l := begin(w, func(store credential.Store) credential.Store { return forgetful{store} })
		l.ask(kept, "", "missingCredentialPolicy: Rotate")
		l.Advance(pause)
		l.has(kept, 1)
	}, onlyCrashes())
	if finding == nil || !strings.Contains(finding.String(), "Secret tenant-credentials/acme.web.db.g1, password: it has had 2 values") {
		t.Errorf("it is not found, or something else is: %v", finding)
	}
}

// A Tenant and its Secrets are restored from a backup, with new uids and without a status. No password is generated, and no login of the Tenant is taken for
// that of another one.
func TestARestoredTenantKeepsItsCredentials(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		l := begin(w, sameStore)
		l.ask(kept, "", "")
		l.Advance(pause)
		l.has(kept, 1)
		tenant := &v1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: kept}}
		var restored []client.Object
		var secrets corev1.SecretList
		if err := w.Client().List(w.Context(), &secrets, client.InNamespace(credentials)); err != nil {
			w.Fatal(err)
		}
		for i := range secrets.Items {
			restored = append(restored, &secrets.Items[i])
		}
		w.Stop()
		w.RestoreFromBackup(append(restored, tenant)...)
		w.Restart()
		l.Advance(pause)
		l.has(kept, 1)
		if w.Get(tenant); !meta.IsStatusConditionTrue(tenant.Status.Conditions, v1.ConditionReady) {
			w.Errorf("the conditions of the tenant are %+v", tenant.Status.Conditions)
		}
	})
}
