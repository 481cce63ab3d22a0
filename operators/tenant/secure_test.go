package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// A backend whose servers are reached over a network without verified TLS goes on, and says so. Which those are is up to each system.
func TestConnectionsWithoutVerifiedTLSAreShown(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]metav1.ConditionStatus{
		"postgres://a:b@db.example.com/postgres":                                            metav1.ConditionFalse,
		"postgres://a:b@db.example.com/postgres?sslmode=require":                            metav1.ConditionFalse,
		"postgres://a:b@db.example.com/postgres?sslmode=verify-ca":                          metav1.ConditionFalse,
		"postgres://a:b@127.0.0.1,db.example.com/postgres?sslmode=disable":                  metav1.ConditionFalse,
		"postgres://a:b@db.example.com/postgres?sslmode=verify-full":                        metav1.ConditionTrue,
		"postgres://a:b@db.example.com/postgres?sslmode=verify-full&require_auth=password":  metav1.ConditionTrue,
		"postgres://a:b@localhost,127.0.0.2,[::1]/postgres":                                 metav1.ConditionTrue,
		"host=/run/postgresql user=a dbname=postgres":                                       metav1.ConditionTrue,
		"postgres://a:b@db.example.com/postgres?sslmode=require&require_auth=scram-sha-256": metav1.ConditionFalse,
	} {
		server, err := postgres.Open(postgres.Config{DSN: credential.NewPassword(dsn)})
		if err != nil {
			t.Fatal(err)
		}
		if got := connectionSecure(server.Unverified()); got.Status != want {
			t.Errorf("%s: %s, %s", dsn, got.Status, got.Message)
		}
		server.Close()
	}
	for _, methods := range []string{"password", "md5,scram-sha-256", "!none", "!password"} {
		_, err := postgres.Open(postgres.Config{DSN: credential.NewPassword("postgres://a:hush@db.example.com/postgres?require_auth=" + methods)})
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("require_auth=%s without verified TLS: %v", methods, err)
		}
	}
	for _, cache := range []struct {
		of   v1.CacheBackend
		want string
	}{
		{v1.CacheBackend{Redis: &v1.Redis{Nodes: []string{"127.0.0.1:1", "r-0.example.com:6379"}}}, "r-0.example.com:6379;"},
		{v1.CacheBackend{Redis: &v1.Redis{Nodes: []string{"r-0.example.com:6379"}, TLS: true}}, ""},
		{v1.CacheBackend{ElastiCache: &v1.ElastiCache{Endpoint: "e.example.com:6379", Insecure: true}}, "e.example.com:6379;"},
		{v1.CacheBackend{ElastiCache: &v1.ElastiCache{Endpoint: "e.example.com:6379"}}, ""},
	} {
		got := connectionSecure(unverifiedCache(&cache.of))
		if (got.Status == metav1.ConditionTrue) != (cache.want == "") || !strings.Contains(got.Message, " "+cache.want) {
			t.Errorf("%+v: %s, %s", cache.of, got.Status, got.Message)
		}
	}
}

// stubborn is a server in which what the apps of a tenant share fails.
type stubborn struct {
	databases

	shared error
}

func (s stubborn) tenant(names.Tenant, v1.TenantSpec) sharedDatabase { return stubbornTenant(s) }

func (s stubborn) logins(names.App, postgres.Limits, v1.App, v1.TenantSpec) logins { return noLogins{} }

type stubbornTenant stubborn

func (s stubbornTenant) Converge(context.Context, credential.Owner) (bool, error) {
	return false, s.shared
}

func (s stubbornTenant) DeleteDatabase(context.Context, credential.Owner) error { return s.shared }

func (s stubbornTenant) Delete(context.Context, credential.Owner) error { return s.shared }

// noLogins are logins that are as they should be.
type noLogins struct{ logins }

func (noLogins) Converge(context.Context, credential.Owner, ...string) (bool, error) {
	return false, nil
}

// noStore is a store that is met, and cannot be read.
type noStore struct {
	credential.Store

	err error
}

func (s noStore) Read(context.Context, string, credential.Owner, int) (credential.Found, error) {
	return credential.Found{}, s.err
}

// What the owner of a database can block is reported, but does not stop work on the credentials of its apps. All else that apps share comes
// first.
func TestRightsThatAreIncompleteDoNotStopTheWorkOnCredentials(t *testing.T) { //nolint:gocognit // One story, told row by row.
	t.Parallel()
	met := errors.New("the store was asked")
	for _, shared := range []error{
		fmt.Errorf("converge: %w: %w", postgres.ErrIncomplete, postgres.ErrLocked), fmt.Errorf("converge: %w", postgres.ErrLocked), postgres.ErrDown,
	} {
		look := &pass{
			backend: &backend{
				databases: stubborn{shared: shared},
				store:     store{Store: noStore{err: met}, database: names.App.DatabaseSecret, cache: names.App.CacheSecret},
			},
			tenant: tenantOf("stubborn"), seen: &observations{},
		}
		found := look.run(t.Context())
		if len(found.findings) != 1 {
			t.Fatalf("%+v", found.findings)
		}
		one, incomplete := found.findings[0], errors.Is(shared, postgres.ErrIncomplete)
		if errors.Is(one.err, met) != incomplete || errors.Is(one.level, shared) != incomplete || errors.Is(one.err, shared) == incomplete {
			t.Errorf("%v: the credential %v, the level %v", shared, one.err, one.level)
		}
		one.err = nil
		found.findings[0] = one
		conditions, _ := found.judge(look.tenant)
		for _, of := range conditions {
			if of.Type == v1.ConditionInSync && incomplete && of.Reason != reasonLocked {
				t.Errorf("the condition InSync is %s, %s", of.Reason, of.Message)
			}
			if of.Type == v1.ConditionDatabaseReady && of.Status != metav1.ConditionTrue {
				t.Errorf("each app can log in, and the condition DatabaseReady is %s", of.Reason)
			}
		}
	}
}
