package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/witness"
)

// TestNoClientIsLockedOut holds the first credentials of a tenant and logs in with them every 50 ms, while all happens that has locked people out:
// the tests of package witness show what the handlers of two published articles do to such a witness.
func TestNoClientIsLockedOut(t *testing.T) {
	t.Parallel()
	(&story{stage: startRedisStory(t)}).tell(t)
}

// TestNoClientOfElastiCacheIsLockedOut tells the same story with ElastiCache, and credentials in SSM.
func TestNoClientOfElastiCacheIsLockedOut(t *testing.T) {
	t.Parallel()
	(&story{stage: startLab(t, settling())}).tell(t)
}

func startRedisStory(t *testing.T) *stage {
	t.Helper()
	s := sharedStage(t, "", func(tenant string) bool { return tenant == storyTenant })
	s.DeleteAllAtEnd(t, &v1.TenantList{})
	return s
}

// storyTenant is the name of the tenant.
const storyTenant = "acme"

// story is a tenant through all that happens.
type story struct {
	*stage

	// begin starts the operator, until the whole story ends.
	begin   func() *einmaltest.Program
	running *einmaltest.Program
	logs    strings.Builder
	watcher *witness.Witness
	// known are all passwords of apps and administrators.
	known []string
}

func (s *story) tell(t *testing.T) {
	s.begin = func() *einmaltest.Program { return s.start(t) }
	s.running = s.begin()
	s.Kubectl(t, s.manifest("acme", ""), "apply", "-f", "-")
	s.awaitPhase(t, "acme", v1.Ready)
	s.works(t, "acme")
	db, cache := s.credentials(t, "acme")
	s.watcher = s.witnessed(t, "acme")
	for _, part := range s.parts() {
		if !t.Run(part.what, part.do) {
			return
		}
		if seen := s.watcher.Report(); refused(seen) > 0 {
			t.Fatalf("%s: logins were refused:\n%s", part.what, seen)
		}
	}
	again, twice := s.credentials(t, "acme")
	if again != db || twice != cache {
		t.Error("the credentials are others")
	}
	t.Run("a rotation", func(t *testing.T) { s.rotates(t, db, cache) })
	s.known = append(s.passwords(t, 1), s.passwords(t, 2)...)
	s.end(t)
	s.leaksNothing(t)
	if strings.Contains(s.logs.String(), "Secrets are not watched") {
		t.Error("the operator may watch Secrets, and warns that it does not")
	}
}

// part is something that happens to the tenant, after which its first credentials are those that count.
type part struct {
	what string
	do   func(*testing.T)
}

func (s *story) parts() []part {
	parts := []part{
		{"ten applies", s.applies},
		{"a replace, while it runs and while it is down", s.replaces},
		{"a lost status and lost annotations", s.wipes},
		{"restarts", s.restarts},
		{"another plan", s.plans},
		{"a deletion, and another of its name", s.recreates},
		{"a crash of PostgreSQL", s.crashes},
		{"two operators, of which one is killed", s.doubles},
	}
	if s.lab == nil {
		parts = append(parts, part{"all Secrets are deleted, and restored", s.loses})
	}
	return parts
}

// moments lets some logins go by.
func (s *story) moments(t *testing.T) {
	t.Helper()
	before := s.watcher.Report().Logins()
	einmaltest.Eventually(t, "ten logins", func(context.Context) error {
		if now := s.watcher.Report().Logins(); now < before+10 {
			return fmt.Errorf("%d of 10", now-before)
		}
		return nil
	})
}

// end stops the operator, and keeps what it has logged.
func (s *story) end(t *testing.T) {
	t.Helper()
	s.running.Stop(t)
	s.logs.WriteString(s.running.Log())
}

func (s *story) restart(t *testing.T) {
	t.Helper()
	s.end(t)
	s.running = s.begin()
	s.running.AwaitLog(t, `waits" kind=Tenant `)
}

func (s *story) applies(t *testing.T) {
	s.Kubectl(t, strings.Repeat(s.manifest("acme", "")+"\n---\n", 10), "apply", "-f", "-") // One process, which applies it ten times.
	s.moments(t)
}

func (s *story) replaces(t *testing.T) {
	s.Kubectl(t, s.manifest("acme", ""), "replace", "-f", "-")
	s.await(t, "acme", "held by its finalizer again", func(of *v1.Tenant) bool { return len(of.Finalizers) > 0 })
	s.end(t)
	s.Kubectl(t, s.manifest("acme", ""), "replace", "-f", "-")
	s.running = s.begin()
	s.running.AwaitLog(t, `waits" kind=Tenant `)
	s.awaitPhase(t, "acme", v1.Ready)
	s.moments(t)
}

func (s *story) wipes(t *testing.T) {
	s.Kubectl(t, `{"status": null}`, "patch", "tenant", "acme", "--subresource=status", "--type=merge", "--patch-file=/dev/stdin")
	s.Kubectl(t, `{"metadata": {"annotations": null, "finalizers": null}}`, "patch", "tenant", "acme", "--type=merge", "--patch-file=/dev/stdin")
	s.restart(t)
	s.awaitPhase(t, "acme", v1.Ready)
	s.moments(t)
}

func (s *story) restarts(t *testing.T) {
	for range 3 {
		s.restart(t)
	}
	s.running.Kill()
	s.logs.WriteString(s.running.Log())
	s.running = s.begin()
	s.moments(t)
}

func (s *story) plans(t *testing.T) {
	s.Kubectl(t, s.manifest("acme", ", plan: premium"), "apply", "-f", "-")
	s.await(t, "acme", "on the plan premium", func(of *v1.Tenant) bool { return of.Status.Plan == v1.Premium })
	if limit := s.limit(t, "acme", "web"); limit != 50 {
		t.Errorf("the login may have %d connections, want 50", limit)
	}
	s.Kubectl(t, s.manifest("acme", ""), "apply", "-f", "-")
	s.await(t, "acme", "on the plan standard", func(of *v1.Tenant) bool { return of.Status.Plan == v1.Standard })
	if limit := s.limit(t, "acme", "web"); limit != 10 {
		t.Errorf("the login may have %d connections, want 10", limit)
	}
	s.moments(t)
}

func (s *story) recreates(t *testing.T) {
	s.Kubectl(t, "", "delete", "tenant", "acme", "--timeout=60s")
	s.moments(t)
	s.Kubectl(t, s.manifest("acme", ""), "apply", "-f", "-")
	s.awaitPhase(t, "acme", v1.Ready)
	s.moments(t)
}

// rotates asks for others: the first ones are accepted as long as the overlap lasts, and then they are not. The overlap ends only when the
// witness has stopped, so that a slow machine does not end it earlier.
func (s *story) rotates(t *testing.T, db, cache credential.Record) {
	const long = ", credentials: {probeInterval: 10s, rotation: {requestId: spring, overlap: 1h}}"
	s.Kubectl(t, s.manifest("acme", long), "apply", "-f", "-")
	s.await(t, "acme", "rotating", func(of *v1.Tenant) bool {
		return of.Status.Phase == v1.Rotating && rotated(of.Status.Apps[0].Database) && rotated(of.Status.Apps[0].Cache)
	})
	s.works(t, "acme")
	s.moments(t)
	if seen := s.watcher.Stop(); refused(seen) > 0 {
		t.Errorf("logins were refused during the rotation:\n%s", seen)
	} else {
		t.Logf("the witness saw:\n%s", seen)
	}
	asked := strings.Replace(long, "1h", "10s", 1)
	s.Kubectl(t, s.manifest("acme", asked), "apply", "-f", "-")
	s.awaitPhase(t, "acme", v1.Ready)
	s.works(t, "acme")
	if err := s.logIn(t, "acme", db); err == nil {
		t.Error("after the overlap, the first credential of the database is accepted")
	}
	if err := s.authenticate(t, cache, "acme:witness"); err == nil {
		t.Error("after the overlap, the first credential of the cache is accepted")
	}
	s.Kubectl(t, s.manifest("acme", asked), "apply", "-f", "-")
	s.restart(t)
	if tenant := s.awaitPhase(t, "acme", v1.Ready); !rotated(tenant.Status.Apps[0].Database) || !rotated(tenant.Status.Apps[0].Cache) {
		t.Errorf("the same request is answered once more: %+v", tenant.Status.Apps[0])
	}
}

func rotated(of *v1.Principal) bool {
	return of != nil && of.Generation == 2 && of.RequestID == "spring"
}

// leaksNothing looks for every password that there ever was in all that people read.
func (s *story) leaksNothing(t *testing.T) {
	t.Helper()
	places := map[string]string{
		"the operator's log": s.logs.String(), "the log of PostgreSQL": s.postgres.Log(), "the log of Redis": s.redis.Log(),
		"the tenants":                          s.Kubectl(t, "", "get", "tenants,tenantbackends", "-o", "yaml"),
		"the events":                           s.Kubectl(t, "", "get", "events", "-A", "-o", "yaml"),
		"the namespaces, pods and config maps": s.Kubectl(t, "", "get", "namespaces,configmaps,pods", "-A", "-o", "yaml"),
	}
	for where, text := range places {
		if len(text) == 0 {
			t.Errorf("%s: nothing was read", where)
		}
		for _, secret := range s.known {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows a password", where)
			}
		}
	}
}

// passwords are those of a generation in both systems, and that of the admin of Redis.
func (s *stage) passwords(t *testing.T, generation int) []string {
	t.Helper()
	of, suffix := names.Tenant{Name: storyTenant}.App("web"), fmt.Sprint("g", generation)
	var db, cache credential.Record
	if s.lab != nil {
		db, cache = s.parameter(t, labPrefix+"/"+of.DatabaseRecord()+"/"+suffix), s.parameter(t, labPrefix+"/"+of.CacheRecord()+"/"+suffix)
	} else {
		db, cache = s.stored(t, of.DatabaseSecret()+"."+suffix), s.stored(t, of.CacheSecret()+"."+suffix)
	}
	return []string{s.redis.AdminPassword(), db.Password.Reveal(), cache.Password.Reveal()}
}

// limit is how many connections an app's login may have.
func (s *stage) limit(t *testing.T, tenant, app string) int {
	t.Helper()
	var limit int
	s.query(t, &limit, "SELECT rolconnlimit FROM pg_roles WHERE rolname = $1", names.Tenant{Name: tenant}.App(app).Logins()[0])
	return limit
}

// touch wakes all tenants of the backend, without a change of theirs.
func (s *stage) touch(t *testing.T, value string) {
	t.Helper()
	backend := &v1.TenantBackend{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: s.backend}, backend); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"touched":"`+value+`"}}}`))
	if err := s.Patch(t.Context(), backend, patch); err != nil {
		t.Fatal(err)
	}
}

// steadyLooks is how often steady tenants are looked at.
const steadyLooks = 10

// Ten looks at what is as it should be write nothing: not in the API server, nor in AWS, nor in the database.
func TestWhatIsSteadyIsNotWritten(t *testing.T) {
	t.Parallel()
	s := startLab(t, settling())
	running := s.start(t)
	s.Kubectl(t, s.manifest("acme", ""), "apply", "-f", "-")
	tenant := s.awaitPhase(t, "acme", v1.Ready)
	running.Stop(t)
	running = s.start(t)
	running.AwaitLog(t, `waits" kind=Tenant `)
	s.lab.Forget()
	logged := len(s.postgres.Log())
	began := time.Now()
	for i := range steadyLooks {
		s.touch(t, fmt.Sprint(i))
		einmaltest.Eventually(t, "another look", func(context.Context) error {
			if looks := strings.Count(running.Log(), `waits" kind=Tenant `); looks < i+2 {
				return fmt.Errorf("%d looks", looks)
			}
			return nil
		})
	}
	t.Logf("%d looks in %s, with %d calls of AWS", steadyLooks, time.Since(began).Round(time.Millisecond), len(s.lab.Journal()))
	running.Stop(t)
	if len(s.lab.Journal()) < steadyLooks || s.lab.Writes() > 0 {
		t.Errorf("%d writes to AWS, in %d calls", s.lab.Writes(), len(s.lab.Journal()))
	}
	for line := range strings.Lines(s.postgres.Log()[logged:]) {
		for _, verb := range []string{"CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "COMMENT", "INSERT", "UPDATE", "DELETE"} {
			if strings.Contains(line, "statement: "+verb) || strings.Contains(line, "execute <unnamed>: "+verb) {
				t.Errorf("a statement writes: %s", line)
			}
		}
	}
	if after := s.awaitPhase(t, "acme", v1.Ready); after.ResourceVersion != tenant.ResourceVersion {
		t.Errorf("the tenant was written: resourceVersion %s, was %s", after.ResourceVersion, tenant.ResourceVersion)
	}
}
