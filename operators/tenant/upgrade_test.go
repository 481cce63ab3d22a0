package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/witness"
)

// TestTenantsOfAnEarlierReleaseKeepTheirCredentials loads what earlier releases have left into real servers, and starts this operator there: no
// credential changes, no login is refused at any time, every mark is still the tenant's own, and scripts in Redis still run.
func TestTenantsOfAnEarlierReleaseKeepTheirCredentials(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/upgrade/*/objects.json")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no release is found: %v", err)
	}
	for _, objects := range folders {
		folder := filepath.Dir(objects)
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			s := startLab(t, awslab.Options{})
			s.program = quick(t)
			(&upgrade{stage: s, earlier: s.loadEarlier(t, folder)}).tell(t)
		})
	}
}

// upgrade is a stage on which an earlier release has worked.
type upgrade struct {
	*stage
	earlier

	running *einmaltest.Program
}

// held is a credential that an app may have read.
type held struct {
	tenant, name string
	system       system
	record       credential.Record
}

func (u *upgrade) tell(t *testing.T) {
	accepted := u.accepted(t)
	u.letIn(t, accepted)
	before := u.passwordsInUse(t)
	watcher := witness.Start(t.Context(), u.watched(accepted)...)
	u.running = u.start(t)
	u.looks(t, 1)
	for _, backend := range []string{"local", "aws"} {
		u.backend = backend
		u.touch(t, "once more")
	}
	u.looks(t, 2)
	if diff := cmp.Diff(before, u.passwordsInUse(t)); diff != "" {
		t.Errorf("what the systems accept has changed (-before +after):\n%s", diff)
	}
	u.storeIsAsItWas(t)
	u.tenantsAreAsTheyWere(t)
	u.letIn(t, accepted)
	u.scripts(t, accepted)
	seen := watcher.Stop()
	if seen.Failures() > 0 || seen.Logins() < 5 {
		t.Errorf("logins failed:\n%s", seen)
	}
	u.goesOn(t)
}

// accepted are the credentials that the systems accept: those that readers get, and the ones before them during an overlap.
func (u *upgrade) accepted(t *testing.T) []held {
	t.Helper()
	var all []held
	add := func(name, separator string, record credential.Record) {
		parts := strings.Split(strings.TrimPrefix(name, labPrefix+"/"), separator)
		if len(parts) == 3 || strings.HasSuffix(parts[0], "-overlap") {
			of := map[string]system{"db": database, "cache": caching}[parts[2]]
			all = append(all, held{tenant: parts[0], name: name, system: of, record: record})
		}
	}
	for _, secret := range u.secrets {
		add(secret.Name, ".", loginOf(map[string]string{
			credential.UsernameKey: string(secret.Data[credential.UsernameKey]), credential.PasswordKey: string(secret.Data[credential.PasswordKey]),
		}))
	}
	for _, one := range u.earlier.parameters {
		var value struct{ Username, Password string }
		decode(t, []byte(one.Value), &value)
		add(one.Name, "/", credential.Record{Username: value.Username, Password: credential.NewPassword(value.Password)})
	}
	if len(all) != 32 {
		t.Fatalf("%d credentials are known, want 32", len(all))
	}
	return all
}

// letIn shows that each credential is accepted.
func (u *upgrade) letIn(t *testing.T, accepted []held) {
	t.Helper()
	for _, one := range accepted {
		var err error
		if one.system == database {
			err = u.logIn(t, one.tenant, one.record, "SELECT * FROM greeting")
		} else {
			session := u.redis.Client(one.record.Username, one.record.Password.Reveal())
			err = session.Ping(t.Context()).Err()
			_ = session.Close()
		}
		if err != nil {
			t.Errorf("%s is not accepted: %v", one.name, err)
		}
	}
}

// watched are the logins of which no attempt may fail: those of an overlap, and those of an app that was taken out.
func (u *upgrade) watched(accepted []held) []witness.Target {
	var targets []witness.Target
	for _, one := range accepted {
		switch {
		case !strings.Contains(one.name, "overlap") && !strings.Contains(one.name, "old"):
		case one.system == database:
			targets = append(targets, witness.Postgres{
				Address: u.postgres.Address(), Database: names.Tenant{Name: one.tenant}.Database(), Username: one.record.Username, Password: one.record.Password,
			})
		default:
			targets = append(targets, witness.Redis{
				Address: u.redis.Address(), Username: one.record.Username, Password: one.record.Password, Key: one.tenant + ":witness",
			})
		}
	}
	return targets
}

// looks waits until the operator has looked at each tenant so often.
func (u *upgrade) looks(t *testing.T, times int) {
	t.Helper()
	einmaltest.Eventually(t, fmt.Sprintf("%d looks at each tenant", times), func(context.Context) error {
		for _, tenant := range u.tenants {
			if strings.Count(u.running.Log(), `handler waits" kind=Tenant object=/`+tenant.Name+" ") < times {
				return fmt.Errorf("not yet at %s", tenant.Name)
			}
		}
		return nil
	})
}

// passwordsInUse are what the systems keep of passwords, and whether the users may log in.
func (u *upgrade) passwordsInUse(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	session, err := pgx.Connect(t.Context(), u.postgres.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(t.Context()) }()
	rows, err := session.Query(t.Context(), `SELECT rolname, rolcanlogin::text || coalesce(rolpassword, '') FROM pg_authid WHERE rolname LIKE 't\_%'`)
	if err != nil {
		t.Fatal(err)
	}
	var role, password string
	if _, err := pgx.ForEachRow(rows, []any{&role, &password}, func() error { found["role "+role] = password; return nil }); err != nil {
		t.Fatal(err)
	}
	admin := u.redis.Admin()
	defer func() { _ = admin.Close() }()
	lines, err := admin.ACLList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		words := strings.Fields(line)
		kept := slices.DeleteFunc(slices.Clone(words[2:]), func(word string) bool { return word != "on" && word != "off" && word[0] != '#' })
		found["user "+words[1]] = strings.Join(slices.Sorted(slices.Values(kept)), " ")
	}
	return found
}

// storeIsAsItWas shows that no credential was generated or published.
func (u *upgrade) storeIsAsItWas(t *testing.T) {
	t.Helper()
	var secrets corev1.SecretList
	if err := u.List(t.Context(), &secrets, client.InNamespace("credentials")); err != nil {
		t.Fatal(err)
	}
	want, got := map[string]map[string][]byte{}, map[string]map[string][]byte{}
	for _, one := range u.secrets {
		want[one.Name] = one.Data
	}
	for _, one := range secrets.Items {
		got[one.Name] = one.Data
	}
	if !cmp.Equal(want, got) { // The difference would show passwords.
		t.Errorf("the Secrets are others: %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for _, one := range u.earlier.parameters {
		var kept struct{ Username, Password string }
		decode(t, []byte(one.Value), &kept)
		if now := u.parameter(t, one.Name); now.Username != kept.Username || now.Password != credential.NewPassword(kept.Password) {
			t.Errorf("the parameter %s is another", one.Name)
		}
	}
	for _, call := range u.lab.Journal() {
		if call.Action == "PutParameter" && !slices.ContainsFunc(u.earlier.parameters, func(one earlierParameter) bool { return one.Name == call.Resource }) {
			t.Errorf("the parameter %s is new", call.Resource)
		}
	}
}

// tenantsAreAsTheyWere shows that each is in the phase and has the generations that it had, and that no system reports a conflict of ownership.
func (u *upgrade) tenantsAreAsTheyWere(t *testing.T) {
	t.Helper()
	for _, was := range u.tenants {
		now := u.awaitPhase(t, was.Name, was.Status.Phase)
		for i, app := range was.Status.Apps {
			for _, pair := range [][2]*v1.Principal{{app.Database, now.Status.Apps[i].Database}, {app.Cache, now.Status.Apps[i].Cache}} {
				if pair[1] == nil || pair[0].Generation != pair[1].Generation || pair[0].User != pair[1].User || pair[1].Problem != "" {
					t.Errorf("%s, app %s: %+v, was %+v", was.Name, app.Name, pair[1], pair[0])
				}
			}
		}
	}
	if strings.Contains(u.running.Log(), reasonConflict) {
		t.Errorf("the operator tells of an %s", reasonConflict)
	}
}

// scripts shows that users that may write still run scripts.
func (u *upgrade) scripts(t *testing.T, accepted []held) {
	t.Helper()
	for _, one := range accepted {
		if one.system == database || strings.Contains(one.name, "reports") {
			continue
		}
		session := u.redis.Client(one.record.Username, one.record.Password.Reveal())
		err := session.Eval(t.Context(), "return redis.call('SET', KEYS[1], 'x', 'EX', 60)", []string{one.tenant + ":script"}).Err()
		_ = session.Close()
		if err != nil {
			t.Errorf("%s runs no script any more: %v", one.name, err)
		}
	}
}

// goesOn shows that the next rotation works, and that an app that was taken out and is asked for again gets its credentials again.
func (u *upgrade) goesOn(t *testing.T) { //nolint:gocognit // One story, told row by row.
	t.Helper()
	for _, backend := range []string{"local", "aws"} {
		ask := func(name string, change func(*v1.TenantSpec)) {
			tenant := &v1.Tenant{}
			if err := u.Get(t.Context(), client.ObjectKey{Name: backend + name}, tenant); err != nil {
				t.Fatal(err)
			}
			spec := tenant.Spec.DeepCopy()
			change(spec)
			patch, err := json.Marshal(map[string]any{"spec": spec})
			if err != nil {
				t.Fatal(err)
			}
			if err := u.Patch(t.Context(), tenant, client.RawPatch("application/merge-patch+json", patch)); err != nil {
				t.Fatal(err)
			}
		}
		ask("-rotated", func(spec *v1.TenantSpec) { spec.Credentials.Rotation.RequestID = "summer" })
		ask("-retained", func(spec *v1.TenantSpec) {
			spec.Apps = append(spec.Apps, v1.App{Name: "old", Database: v1.Database{Access: v1.AccessReadWrite}})
		})
	}
	for _, backend := range []string{"local", "aws"} {
		u.await(t, backend+"-rotated", "rotated once more", func(of *v1.Tenant) bool {
			app := of.Status.Apps[0]
			return app.Database.Generation == 3 && app.Cache.Generation == 3
		})
		again := u.await(t, backend+"-retained", "with its old app", func(of *v1.Tenant) bool {
			return of.Status.Phase == v1.Ready && len(of.Status.Apps) == 2
		})
		if old := again.Status.Apps[1]; old.Database.Generation != 1 || old.Cache.Generation != 1 {
			t.Errorf("%s: the app that is back has %+v and %+v", again.Name, old.Database, old.Cache)
		}
	}
}
