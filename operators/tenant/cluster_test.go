package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// stage is a real control plane with the operator's CRDs and RBAC, a real PostgreSQL and a real Redis: the tests are the users. The
// operator acts as its own ServiceAccount. The servers belong to one test, since tests stop them and read their logs and users.
type stage struct {
	*einmaltest.Cluster

	postgres *servers.Postgres
	redis    *servers.Redis
	// lab is the emulator of AWS, where the backend is on it.
	lab        *awslab.Lab
	parameters *awsssm.Client
	// prefix begins the names of the backend "local" and of its Secrets.
	prefix  string
	backend string
	// program is the operator; "" for the test binary itself.
	program string
	config  string
	// metrics is the address of the operator's metrics; "" for none.
	metrics string
}

// startStage starts a control plane for this test alone.
func startStage(t *testing.T) *stage {
	t.Helper()
	return stageOn(t, einmaltest.StartCluster(t, v1.AddToScheme), "")
}

// sharedStage uses the shared control plane, with servers of its own, and a backend and Secrets whose names begin with the prefix. When the test
// ends, it deletes the credentials of the tenants for which owns returns true. Of the tests that run at the same time, only one may create
// Tenants and run operators.
func sharedStage(t *testing.T, prefix string, owns func(tenant string) bool) *stage {
	t.Helper()
	s := stageOn(t, einmaltest.SharedCluster(t, v1.AddToScheme), prefix)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // The test's own context has ended.
		defer cancel()
		var all corev1.SecretList
		err := s.List(ctx, &all, client.InNamespace(credentialsNamespace))
		for i := range all.Items { // kubectl would wait for one Secret after the other.
			if tenant, _, _ := strings.Cut(all.Items[i].Name, "."); owns(tenant) {
				err = errors.Join(err, client.IgnoreNotFound(s.Delete(ctx, &all.Items[i])))
			}
		}
		if err != nil {
			t.Errorf("delete the credentials: %v", err)
		}
		s.Kubectl(t, "", "delete", "tenantbackends", prefix+"local")
		s.Kubectl(t, "", "delete", "secrets", "-n", "tenant-system", prefix+"postgres-admin", prefix+"redis-admin")
	})
	return s
}

func stageOn(t *testing.T, on *einmaltest.Cluster, prefix string) *stage {
	t.Helper()
	s := &stage{Cluster: on, prefix: prefix, backend: prefix + "local", postgres: servers.StartPostgres(t, "max_prepared_transactions=20"), redis: servers.StartRedis(t)}
	s.ApplyFolders(t, "config/crd", "config/rbac")
	s.config = s.ServiceAccount(t, "tenant-system", "tenant")
	s.make(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-system", Name: prefix + "postgres-admin"}, StringData: map[string]string{"dsn": s.postgres.AdminDSN()},
	})
	s.make(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-system", Name: prefix + "redis-admin"},
		StringData: map[string]string{"username": servers.RedisAdmin, "password": s.redis.AdminPassword()},
	})
	s.make(t, s.local())
	return s
}

// manifest is a tenant as its user writes it.
func (s *stage) manifest(name, more string) string {
	return fmt.Sprintf("{apiVersion: tenant.einmal.dev/v1, kind: Tenant, metadata: {name: %s}, spec: {backendRef: {name: %s}, apps: [{name: web}]%s}}",
		name, s.backend, more)
}

// local is a backend on the servers of the test, with credentials in Secrets.
func (s *stage) local() *v1.TenantBackend {
	admin := func(name string) v1.SecretRef { return v1.SecretRef{Namespace: "tenant-system", Name: name} }
	return &v1.TenantBackend{
		ObjectMeta: metav1.ObjectMeta{Name: s.prefix + "local"},
		Spec: v1.TenantBackendSpec{
			Postgres: &v1.Postgres{DSNSecretRef: v1.SecretKeyRef{SecretRef: admin(s.prefix + "postgres-admin")}},
			Cache: &v1.CacheBackend{Kind: v1.CacheRedis, Redis: &v1.Redis{
				Nodes: []string{s.redis.Address()}, AdminSecretRef: admin(s.prefix + "redis-admin"),
			}},
			Store: v1.StoreBackend{Kind: v1.StoreSecret, Secret: &v1.SecretStore{Namespace: credentialsNamespace}},
		},
	}
}

func (s *stage) start(t *testing.T) *einmaltest.Program {
	t.Helper()
	if s.program == "" {
		s.program = self(t)
	}
	flags := []string{"-v"}
	if s.metrics != "" {
		flags = append(flags, "--metrics-bind-address", s.metrics)
	}
	return s.Run(t, s.program, s.config, flags...)
}

// self returns the path of this test binary. TestMain makes it act as the operator, which saves linking the operator.
func self(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func (s *stage) make(t *testing.T, object client.Object) {
	t.Helper()
	if err := s.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// tenantOf is a tenant with an app.
func tenantOf(name string) *v1.Tenant {
	return &v1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.TenantSpec{BackendRef: v1.BackendRef{Name: "local"}, Apps: []v1.App{{Name: "web"}}},
	}
}

// await waits until a tenant's status is as it should be, and returns the tenant.
func (s *stage) await(t *testing.T, name, what string, holds func(*v1.Tenant) bool) *v1.Tenant {
	t.Helper()
	tenant := &v1.Tenant{}
	einmaltest.Eventually(t, name+" is "+what, func(ctx context.Context) error {
		*tenant = v1.Tenant{} // Else it would be mixed with what was read before.
		if err := s.Get(ctx, client.ObjectKey{Name: name}, tenant); err != nil {
			return err
		}
		if !holds(tenant) || tenant.Status.ObservedGeneration != tenant.Generation {
			tenant.Status.Records.Records = nil
			return fmt.Errorf("generation %d has the status %+v", tenant.Generation, tenant.Status)
		}
		return nil
	})
	return tenant
}

func (s *stage) awaitPhase(t *testing.T, name string, phase v1.Phase) *v1.Tenant {
	t.Helper()
	return s.await(t, name, string(phase), func(of *v1.Tenant) bool { return of.Status.Phase == phase })
}

// stored is the credential that readers get.
func (s *stage) stored(t *testing.T, name string) credential.Record {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: credentialsNamespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return credential.Record{
		Username: string(secret.Data[credential.UsernameKey]), Password: credential.NewPassword(string(secret.Data[credential.PasswordKey])),
	}
}

// loginWait is how long a login may take.
const loginWait = 5 * time.Second

// logIn logs in to the database of a tenant, and does something there.
func (s *stage) logIn(t *testing.T, tenant string, with credential.Record, statements ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), loginWait)
	defer cancel()
	session, err := pgx.Connect(ctx, s.postgres.DSNOf(with.Username, with.Password.Reveal(), names.Tenant{Name: tenant}.Database()))
	if err != nil {
		return err
	}
	defer func() { _ = session.Close(ctx) }()
	for _, statement := range append([]string{"SELECT 1"}, statements...) {
		if _, err := session.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// sql does something as a superuser.
func (s *stage) sql(t *testing.T, statement string) {
	t.Helper()
	if err := s.sqlIn(t, "postgres", statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// sqlIn does something in a database as a superuser.
func (s *stage) sqlIn(t *testing.T, database, statement string) error {
	t.Helper()
	settings, err := pgx.ParseConfig(s.postgres.DSN())
	if err != nil {
		return err
	}
	settings.Database = database
	session, err := pgx.ConnectConfig(t.Context(), settings)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close(t.Context()) }()
	_, err = session.Exec(t.Context(), statement)
	return err
}

// query asks for one value as a superuser.
func (s *stage) query(t *testing.T, into any, statement string, args ...any) {
	t.Helper()
	session, err := pgx.Connect(t.Context(), s.postgres.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(t.Context()) }()
	if err := session.QueryRow(t.Context(), statement, args...).Scan(into); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// authenticate logs in to Redis, and sets a key.
func (s *stage) authenticate(t *testing.T, with credential.Record, key string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), loginWait)
	defer cancel()
	session := s.redis.Client(with.Username, with.Password.Reveal())
	defer func() { _ = session.Close() }()
	return session.Set(ctx, key, "x", time.Minute).Err()
}

// credentials are what readers get for a tenant's app.
func (s *stage) credentials(t *testing.T, tenant string) (db, cache credential.Record) {
	t.Helper()
	of := names.Tenant{Name: tenant}.App("web")
	if s.lab != nil {
		return s.parameter(t, labPrefix+"/"+of.DatabaseRecord()), s.parameter(t, labPrefix+"/"+of.CacheRecord())
	}
	return s.stored(t, of.DatabaseSecret()), s.stored(t, of.CacheSecret())
}

// works shows that the credentials that are stored for a tenant's app are accepted by both systems.
func (s *stage) works(t *testing.T, tenant string) {
	t.Helper()
	db, cache := s.credentials(t, tenant)
	if err := s.logIn(t, tenant, db); err != nil {
		t.Errorf("%s cannot log in to the database: %v", tenant, err)
	}
	if err := s.authenticate(t, cache, tenant+":greeting"); err != nil {
		t.Errorf("%s cannot log in to the cache: %v", tenant, err)
	}
}

// as sends a command to Redis as its administrator.
func (s *stage) as(t *testing.T, command ...any) {
	t.Helper()
	admin := s.redis.Admin()
	defer func() { _ = admin.Close() }()
	if err := admin.Do(t.Context(), command...).Err(); err != nil {
		t.Fatalf("%v: %v", command, err)
	}
}
