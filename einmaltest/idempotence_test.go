package einmaltest_test

import (
	"context"
	"crypto/rand"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// Tenant is a customer who gets a user of the database (testdata/tenants.yaml).
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TenantSpec   `json:"spec,omitempty"`
	Status TenantStatus `json:"status,omitempty"`
}

type TenantSpec struct {
	Plan string `json:"plan,omitempty"`
}

type TenantStatus struct {
	einmal.Records `json:",inline"`

	Phase string `json:"phase,omitempty"`
}

// DeepCopyObject copies the tenant.
func (t *Tenant) DeepCopyObject() runtime.Object {
	copied := *t
	t.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Records.Records = maps.Clone(t.Status.Records.Records)
	return &copied
}

// TenantList is a list of tenants.
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tenant `json:"items"`
}

// DeepCopyObject copies the list.
func (l *TenantList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]Tenant, len(l.Items))
	for i := range l.Items {
		if item, is := l.Items[i].DeepCopyObject().(*Tenant); is {
			copied.Items[i] = *item
		}
	}
	return &copied
}

func addTenants(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Tenant{}, &TenantList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}

// outside is what a tenant needs outside of the cluster: a database with users, and a store in which services find the
// passwords.
type outside struct{ database, store map[string]string }

// system is the outside as one process of the operator reaches it.
type system struct {
	*outside
	process *einmaltest.Process
}

// setPassword makes a user of the database, or gives it another password.
func (s system) setPassword(tenant, password string) error {
	return s.process.IdempotentEffect("set the database password of "+tenant, func() (any, error) {
		s.database[tenant] = password
		return password, nil
	})
}

// put stores a password, over the one that was there.
func (s system) put(tenant, password string) error {
	return s.process.IdempotentEffect("store the password of "+tenant, func() (any, error) {
		s.store[tenant] = password
		return password, nil
	})
}

// putOnce stores a password if there is none yet, and returns the one that is stored.
func (s system) putOnce(tenant, password string) (stored string, err error) {
	err = s.process.IdempotentEffect("store the password of "+tenant, func() (any, error) {
		if _, there := s.store[tenant]; !there {
			s.store[tenant] = password
		}
		stored = s.store[tenant]
		return stored, nil
	})
	return stored, err
}

// landmine is a create handler that works, until it runs twice.
func landmine(to system) einmal.HandlerFunc[Tenant] {
	return func(_ context.Context, c *einmal.Change[Tenant]) error {
		password := rand.Text()
		if err := to.setPassword(c.Object.Name, password); err != nil {
			return err
		}
		return to.put(c.Object.Name, password)
	}
}

// repaired stores what it has generated before anything else hears of it, and only if nothing is stored.
func repaired(to system) einmal.HandlerFunc[Tenant] {
	return func(_ context.Context, c *einmal.Change[Tenant]) error {
		password, err := to.putOnce(c.Object.Name, rand.Text())
		if err != nil {
			return err
		}
		return to.setPassword(c.Object.Name, password)
	}
}

// lifeOfATenant is what happens on every deploy: the same manifest is applied again, and the operator restarts. A service
// that has read its password when it started goes on logging in with it.
func lifeOfATenant(provision func(system) einmal.HandlerFunc[Tenant]) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		world := &outside{database: map[string]string{}, store: map[string]string{}}
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("tenants.example.com", einmal.Scheme(addTenants), einmal.CRDs(tenantKinds(w)))
			einmal.For[Tenant](op).OnCreate("provision", provision(system{world, p}))
			return op
		})
		const manifest = `{apiVersion: example.com/v1, kind: Tenant, metadata: {name: acme}, spec: {plan: small}}`
		w.Apply(manifest)
		w.Advance(10 * time.Minute)
		service := world.store["acme"]
		w.Apply(manifest)
		w.Restart()
		w.Advance(10 * time.Minute)
		if world.database["acme"] != service {
			w.Error("a service that has been running for ten minutes cannot log in any more")
		}
	}
}

func tenantKinds(tb testing.TB) []byte {
	tb.Helper()
	manifest, err := os.ReadFile("testdata/tenants.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return manifest
}

// Articles 000 and 001: a handler that generates a password each time that it runs is found, and where it breaks.
func TestALandmineIsFound(t *testing.T) {
	finding := einmaltest.Search(t, lifeOfATenant(landmine))
	if finding == nil {
		t.Fatal("it was not found")
	}
	t.Log(finding)
	const where = "crash before: effect store the password of acme #1"
	if finding.Schedule != where {
		t.Errorf("it was found in %q, want %q", finding.Schedule, where)
	}
	page, err := os.ReadFile("../docs/concepts/idempotence.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), finding.String()) {
		t.Errorf("the page on idempotence shows another report than:\n%s", finding)
	}
}

// The repaired handler may run as often as it wants.
func TestARepairedHandlerSurvives(t *testing.T) {
	einmaltest.Explore(t, lifeOfATenant(repaired))
}
