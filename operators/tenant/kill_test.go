package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// longestLife is how long the operator lives at most before it is killed, from when it begins to look at tenants.
const longestLife = 400 * time.Millisecond

// Environment variables of TestAKilledOperatorEndsTheSame: how often the operator is killed (default 10), and the seed that chooses the
// moments (default 1).
const (
	killsVariable = "EINMAL_KILLS"
	seedVariable  = "EINMAL_KILL_SEED"
)

// numberFrom reads an environment variable.
func numberFrom(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		t.Fatalf("the environment variable %s must be a positive number, got %q", variable, text)
	}
	return number
}

// TestAKilledOperatorEndsTheSame kills the operator's process again and again, at moments that a seed chooses, while tenants are
// made, changed, replaced, deleted and made again. In the end each has its first credentials, both logins work, and nothing is there that was not
// asked for.
func TestAKilledOperatorEndsTheSame(t *testing.T) {
	s := sharedStage(t, "", func(tenant string) bool { return strings.HasPrefix(tenant, killedPrefix) })
	s.program = quick(t)
	s.DeleteAllAtEnd(t, &v1.TenantList{})
	kills, seed := numberFrom(t, killsVariable, 10), numberFrom(t, seedVariable, 1)
	t.Logf("the seed is %d: set %s for another", seed, seedVariable)
	chance := rand.New(rand.NewPCG(uint64(seed), uint64(seed)))
	first := map[string]map[string]string{}
	s.make(t, tenantOf(killed(0)))
	running := s.start(t)
	s.awaitPhase(t, killed(0), v1.Ready)
	running.Kill()
	watcher := s.witnessed(t, killed(0))
	began, within := time.Now(), 0
	for n := range kills {
		s.disturb(t, n, chance)
		running := s.start(t)
		running.AwaitLog(t, "msg=serving kind=Tenant ")
		s.live(t, time.Duration(chance.Int64N(int64(longestLife))), first)
		running.Kill()
		invoked, done := strings.Count(running.Log(), `invoked" kind=Tenant `), strings.Count(running.Log(), `waits" kind=Tenant `)
		if invoked > done {
			within++
		}
	}
	t.Logf("%d kills in %s, %d of them while a tenant was worked on; %d records were seen on the way",
		kills, time.Since(began).Round(time.Second), within, len(first))
	if seen := watcher.Stop(); seen.Failures() > 0 || seen.Logins() < kills {
		t.Errorf("while the operator was killed, logins failed, or were few:\n%s", seen)
	} else {
		t.Logf("the witness saw:\n%s", seen)
	}
	s.start(t)
	tenants := (kills + tenantEvery - 1) / tenantEvery
	for i := range tenants {
		name := killed(i)
		s.awaitPhase(t, name, v1.Ready)
		s.works(t, name)
	}
	s.onlyWhatWasAskedFor(t, tenants)
	s.never(t, first)
}

// quick returns the operator without the race detector, so that it is at work sooner.
func quick(t *testing.T) string {
	t.Helper()
	if !raceDetector {
		return self(t)
	}
	program := filepath.Join(t.TempDir(), "tenant")
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, said)
	}
	return program
}

// tenantEvery is after how many kills another tenant is made.
const tenantEvery = 4

const killedPrefix = "killed"

func killed(i int) string { return killedPrefix + strconv.Itoa(i) }

// disturb does what users do, between two lives of the operator. The API server can still carry out a request of the operator that was killed, so
// the writes depend on no resourceVersion.
func (s *stage) disturb(t *testing.T, n int, chance *rand.Rand) {
	t.Helper()
	if n > 0 && n%tenantEvery == 0 {
		s.make(t, tenantOf(killed(n/tenantEvery)))
		return
	}
	name := killed(chance.IntN(n/tenantEvery + 1))
	tenant := &v1.Tenant{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: name}, tenant); err != nil {
		t.Fatal(err)
	}
	switch n % tenantEvery {
	case 1: // A change of the plan.
		before := tenant.DeepCopy()
		tenant.Spec.Plan = map[v1.Plan]v1.Plan{v1.Standard: v1.Premium, v1.Premium: v1.Standard}[tenant.Spec.Plan]
		if err := s.Patch(t.Context(), tenant, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	case 2: // The status is lost, and all else that was remembered in the object.
		s.Kubectl(t, `{"status":null}`, "patch", "tenant", name, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin")
		s.Kubectl(t, `{"metadata":{"annotations":null,"finalizers":null}}`, "patch", "tenant", name, "--type=merge", "--patch-file=/dev/stdin")
	case 3: // It is deleted and made again; while no operator runs, its finalizer would keep it.
		if err := s.Delete(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		einmaltest.Eventually(t, name+" is gone", func(ctx context.Context) error {
			release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			err := s.Patch(ctx, tenant, release)
			if err == nil {
				err = fmt.Errorf("%s was still there", name)
			}
			return client.IgnoreNotFound(err)
		})
		s.make(t, tenantOf(name))
	}
}

// live lets the operator live for a while, and notes what is stored.
func (s *stage) live(t *testing.T, life time.Duration, first map[string]map[string]string) {
	t.Helper()
	end := time.After(life)
	select {
	case <-end:
	case <-t.Context().Done():
	}
	for name, data := range s.records(t) {
		if first[name] == nil {
			first[name] = data
		}
	}
}

// records are all credentials that are stored, of all generations.
func (s *stage) records(t *testing.T) map[string]map[string]string {
	t.Helper()
	var secrets corev1.SecretList
	if err := s.List(t.Context(), &secrets, client.InNamespace(credentialsNamespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]string{}
	for _, secret := range secrets.Items {
		data := map[string]string{"uid": string(secret.UID)}
		for key, value := range secret.Data {
			data[key] = string(value)
		}
		found[secret.Name] = data
	}
	return found
}

// never shows that no record was ever replaced, and that there is one generation of each.
func (s *stage) never(t *testing.T, first map[string]map[string]string) {
	t.Helper()
	now := s.records(t)
	for name, data := range first {
		if !maps.Equal(data, now[name]) {
			t.Errorf("%s was stored, and is another now", name)
		}
	}
	for name, data := range now {
		if data[credential.GenerationKey] != "1" {
			t.Errorf("%s is of generation %s", name, data[credential.GenerationKey])
		}
	}
}

// onlyWhatWasAskedFor shows that the systems have what the tenants ask for, and nothing else.
func (s *stage) onlyWhatWasAskedFor(t *testing.T, tenants int) {
	t.Helper()
	var roles, users, records []string
	for i := range tenants {
		of := names.Tenant{Name: killed(i)}
		app := of.App("web")
		roles = append(roles, of.Owner(), of.ReadWrite(), of.ReadOnly(), app.Logins()[0])
		users = append(users, app.RedisUser())
		for _, record := range []string{app.DatabaseSecret(), app.CacheSecret()} {
			records = append(records, record, record+".g1")
		}
	}
	same(t, "roles", roles, s.roles(t))
	same(t, "users of Redis", users, s.users(t))
	same(t, "records", records, slices.Collect(maps.Keys(s.records(t))))
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the %s are %v, want %v", what, got, want)
	}
}

// roles are the roles of tenants in the database.
func (s *stage) roles(t *testing.T) []string {
	t.Helper()
	ctx := t.Context()
	session, err := pgx.Connect(ctx, s.postgres.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	rows, err := session.Query(ctx, `SELECT rolname FROM pg_roles WHERE rolname LIKE 't\_%'`)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// users are the users of tenants in Redis.
func (s *stage) users(t *testing.T) []string {
	t.Helper()
	admin := s.redis.Admin()
	defer func() { _ = admin.Close() }()
	all, err := admin.Do(t.Context(), "ACL", "USERS").StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "default" || name == "admin" })
}
