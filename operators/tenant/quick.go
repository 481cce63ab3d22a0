package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// fullLookInterval is how often a tenant gets a full look, whatever quick checks say.
const fullLookInterval = 24 * time.Hour

// settled is what a full look has left where all was as it should be. It is in memory alone: a new process knows nothing, and takes full looks.
// See docs/decisions/0016-cost-at-rest.md.
type settled struct {
	uid         types.UID
	generation  int64
	annotations map[string]string
	status      v1.TenantStatus
	backend     *backend
	// secrets are the versions of the Secrets, as they were before the look.
	secrets map[string]string
	until   time.Time
	// logins and users are what the systems are expected to have.
	logins []expectedLogin
	users  []redis.Expected
	// turn is what the next quick check looks at beside the versions and the roles: 0 is the inside of the database, n the password of login n.
	turn int
}

// expectedLogin is what an app is expected to have in a database.
type expectedLogin struct {
	app    v1.App
	limits postgres.Limits
	record string
	given  credential.Given
}

// databaseCheck is what a quick check of a database is about.
type databaseCheck struct {
	tenant *v1.Tenant
	owner  func(names.App) credential.Owner
	logins []expectedLogin
	// prove is a credential whose password is tried. If it is zero, the check looks inside the database.
	prove credential.Record
}

// quickDatabases are databases that can be checked quickly.
type quickDatabases interface {
	difference(ctx context.Context, check databaseCheck) (string, error)
}

// quickCache is a cache whose users can be checked quickly.
type quickCache interface {
	expect(of names.App, wants v1.App, owner credential.Owner, record credential.Record) redis.Expected
	difference(ctx context.Context, all []redis.Expected) (string, error)
}

// quick looks quickly at a tenant that a full look has found as it should be. It reports whether that was enough: a full look is
// due where anything has changed, or is in doubt. It changes nothing, neither outside nor in the status.
func (p *provisioner) quick(ctx context.Context, c *change, seen *observations) (done bool, next error) {
	known := seen.settled
	if known == nil || len(c.WokenBy) > 0 || !known.isOf(c.Object) {
		seen.settled = nil
		return false, nil
	}
	difference, err := p.compare(ctx, c, seen)
	if wait, ok := turnOf(err); ok {
		return true, einmal.RetryAfter(wait, nil)
	}
	if difference == "" && err == nil {
		return true, einmal.RetryAfter(nextLook(c.Object), nil)
	}
	c.Log.Info("quick check found a difference, a full look follows", "difference", difference, "error", err)
	seen.settled, seen.proofs = nil, nil // The full look tries all passwords.
	return false, nil
}

// compare returns what is not as the last full look has left it, "" for nothing.
func (p *provisioner) compare(ctx context.Context, c *change, seen *observations) (string, error) {
	held, release, err := p.backends.useRecent(ctx, c.Client, c.Object.Spec.BackendRef.Name)
	if err != nil {
		return "", err
	}
	if held, release, err = held.work(release); err != nil {
		return "", err
	}
	defer release()
	if held != seen.settled.backend {
		return "the TenantBackend, or a Secret that it names", nil
	}
	look := &pass{backend: held, tenant: c.Object, seen: seen, now: time.Now()}
	return look.difference(ctx, seen.settled)
}

// isOf reports whether the tenant and its status are as the full look has left them, and that is not long ago.
func (s *settled) isOf(tenant *v1.Tenant) bool {
	return s.uid == tenant.UID && s.generation == tenant.Generation && tenant.DeletionTimestamp == nil && time.Now().Before(s.until) &&
		maps.Equal(s.annotations, foreignAnnotations(tenant)) && equality.Semantic.DeepEqual(s.status, withoutRecords(tenant.Status))
}

// foreignAnnotations are the annotations of a tenant that the operator has not made.
func foreignAnnotations(of *v1.Tenant) map[string]string {
	found := maps.Clone(of.Annotations)
	maps.DeleteFunc(found, func(name, _ string) bool { return strings.HasPrefix(name, identity+"/") })
	return found
}

// withoutRecords is a status without what the framework keeps there.
func withoutRecords(status v1.TenantStatus) v1.TenantStatus {
	kept := *status.DeepCopy()
	kept.Records = einmal.Records{}
	return kept
}

// difference returns what is not as the full look has left it, "" for nothing.
func (p *pass) difference(ctx context.Context, known *settled) (string, error) {
	if now, ok := p.versions(); !ok || !maps.Equal(now, known.secrets) {
		return "the Secrets, or the watch of them", nil
	}
	if len(known.users) > 0 {
		checked, ok := p.cache.(quickCache)
		if !ok {
			return "the cache", nil
		}
		if difference, err := checked.difference(ctx, known.users); difference != "" || err != nil {
			return difference, err
		}
	}
	if len(known.logins) == 0 {
		return "", nil
	}
	return p.databaseDifference(ctx, known)
}

// databaseDifference is difference for the database. Each time it looks at another part of what takes a connection of its own.
func (p *pass) databaseDifference(ctx context.Context, known *settled) (string, error) {
	checked, ok := p.databases.(quickDatabases)
	if !ok {
		return "the database", nil
	}
	check := databaseCheck{tenant: p.tenant, owner: p.owner, logins: known.logins}
	turn := known.turn
	known.turn = (turn + 1) % (len(known.logins) + 1)
	if turn > 0 {
		login := known.logins[turn-1]
		record, err := p.store.generation(ctx, login.record, p.owner(p.app(login.app)), login.given.Generation)
		if err != nil {
			return "", err
		}
		if credential.GivenOf(record) != login.given {
			return "the credential " + login.record, nil
		}
		check.prove = record
	}
	difference, err := checked.difference(ctx, check)
	if difference == "" && err == nil && turn > 0 {
		p.seen.prove(finding{app: known.logins[turn-1].app.Name, system: database}.key(), check.prove.Generation, p.now)
	}
	return difference, err
}

// app is an app of the tenant by its names.
func (p *pass) app(of v1.App) names.App { return names.Tenant{Name: p.tenant.Name}.App(of.Name) }

// versions are the versions of all Secrets of the tenant's apps; false if they are not known.
func (p *pass) versions() (map[string]string, bool) {
	var records []string
	for _, app := range p.tenant.Spec.Apps {
		records = append(records, p.store.database(p.app(app)), p.store.cache(p.app(app)))
	}
	return p.store.watch.versions(records)
}

// settle returns what the full look has left, nil if quick checks could not tell whether it stays so. The versions are those from before the look, so
// that a change during the look is a difference later.
func (p *pass) settle(found report, versions map[string]string) *settled {
	_, checksCache := p.cache.(quickCache)
	_, checksDatabases := p.databases.(quickDatabases)
	if p.tenant.Status.Phase != v1.Ready || p.store.generation == nil || p.cache != nil && !checksCache || p.databases != nil && !checksDatabases {
		return nil
	}
	made := &settled{
		uid: p.tenant.UID, generation: p.tenant.Generation, annotations: foreignAnnotations(p.tenant), status: withoutRecords(p.tenant.Status),
		backend: p.backend, secrets: versions,
		until: p.now.Add(time.Duration(float64(fullLookInterval) * (0.8 + 0.2*rand.Float64()))), //nolint:gosec // It spreads the load.
	}
	for _, of := range found.findings {
		outcome := of.outcome
		if of.err != nil || of.level != nil || of.unwanted || outcome.Generation == 0 || !outcome.Until.IsZero() || outcome.Waits {
			return nil
		}
		app, ok := p.wanted(of.app)
		if !ok {
			return nil
		}
		if of.system == database {
			made.logins = append(made.logins, expectedLogin{app, p.limits(app), of.record, credential.GivenOf(outcome.Record)})
			continue
		}
		app.Cache.Scripting = of.scripting
		made.users = append(made.users, p.cache.(quickCache).expect(p.app(app), app, p.owner(p.app(app)), outcome.Record)) //nolint:forcetypeassert // It was looked at above.
	}
	made.turn = rand.IntN(len(made.logins) + 1) //nolint:gosec // It spreads the load.
	return made
}

// wanted is an app of the spec.
func (p *pass) wanted(name string) (v1.App, bool) {
	for _, app := range p.tenant.Spec.Apps {
		if app.Name == name {
			return app, true
		}
	}
	return v1.App{}, false
}

func (s postgresServer) difference(ctx context.Context, of databaseCheck) (string, error) {
	shared := names.Tenant{Name: of.tenant.Name}
	check := postgres.QuickCheck{Tenant: s.Tenant(shared), Owner: of.owner(names.App{Tenant: shared.Name}), Prove: of.prove}
	check.Tenant.Adopt = of.tenant.Spec.AdoptionPolicy == v1.AdoptionAdopt
	for _, login := range of.logins {
		app := shared.App(login.app.Name)
		expected := postgres.Expected{Logins: s.loginsOf(app, login.limits, login.app, of.tenant.Spec), Owner: of.owner(app), Current: login.given}
		for _, username := range app.Logins() {
			if username != login.given.Username {
				expected.Others = append(expected.Others, username)
			}
		}
		check.Apps = append(check.Apps, expected)
	}
	difference, err := check.Difference(ctx)
	if err != nil {
		return "", fmt.Errorf("quick check: %w", err)
	}
	return difference, nil
}

func (r redisCache) expect(of names.App, wants v1.App, owner credential.Owner, record credential.Record) redis.Expected {
	return redis.Users{Nodes: r.nodes, Access: access(of, wants)}.Expect(owner, record)
}

func (r redisCache) difference(ctx context.Context, all []redis.Expected) (string, error) {
	return r.nodes.Difference(ctx, all)
}
