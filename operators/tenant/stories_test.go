package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/witness"
)

// refused is how many logins were refused: those of a server that is down do not count.
func refused(seen witness.Report) int {
	return seen.Failures(witness.WrongPassword, witness.Denied, witness.Other)
}

// loses deletes every Secret with a credential of the tenant, and brings them back as from a backup.
func (s *story) loses(t *testing.T) {
	var backup corev1.SecretList
	if err := s.List(t.Context(), &backup, client.InNamespace(credentialsNamespace)); err != nil {
		t.Fatal(err)
	}
	backup.Items = slices.DeleteFunc(backup.Items, func(one corev1.Secret) bool { return !strings.HasPrefix(one.Name, storyTenant+".") })
	for i := range backup.Items {
		if err := s.Delete(t.Context(), backup.Items[i].DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	s.touch(t, "without Secrets")
	s.await(t, "acme", "not ready", func(of *v1.Tenant) bool { return of.Status.Phase != v1.Ready })
	s.moments(t)
	for i := range backup.Items {
		backup.Items[i].ResourceVersion, backup.Items[i].UID = "", ""
		if err := s.Create(t.Context(), &backup.Items[i]); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	s.touch(t, "with Secrets")
	s.awaitPhase(t, "acme", v1.Ready)
	s.works(t, "acme")
	s.moments(t)
}

// crashes kills the database server, which recovers when it starts again.
func (s *story) crashes(t *testing.T) {
	if err := s.postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	s.touch(t, "without PostgreSQL")
	if err := s.postgres.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.touch(t, "with PostgreSQL")
	s.awaitPhase(t, "acme", v1.Ready)
	s.works(t, "acme")
	s.moments(t)
}

// doubles runs a second operator beside the first, both at work, while the tenant changes; the second is killed again and again.
func (s *story) doubles(t *testing.T) {
	for n := range 6 {
		second := s.start(t)
		second.AwaitLog(t, "msg=serving kind=Tenant ")
		plan := []v1.Plan{v1.Premium, v1.Standard}[n%2]
		s.Kubectl(t, s.manifest("acme", fmt.Sprintf(", plan: %s", plan)), "apply", "-f", "-")
		select {
		case <-time.After(time.Duration(n) * 200 * time.Millisecond):
		case <-t.Context().Done():
		}
		second.Kill()
		s.logs.WriteString(second.Log())
		s.await(t, "acme", "on the plan "+string(plan), func(of *v1.Tenant) bool { return of.Status.Plan == plan })
	}
	s.awaitPhase(t, "acme", v1.Ready)
	s.moments(t)
}

// witnessed starts a witness of the credentials that a tenant has now.
func (s *stage) witnessed(t *testing.T, tenant string) *witness.Witness {
	t.Helper()
	db, cache := s.credentials(t, tenant)
	return witness.Start(t.Context(),
		witness.Postgres{Address: s.postgres.Address(), Database: names.Tenant{Name: tenant}.Database(), Username: db.Username, Password: db.Password},
		witness.Redis{Address: s.redis.Address(), Username: cache.Username, Password: cache.Password, Key: tenant + ":witness"})
}
