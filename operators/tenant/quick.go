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

// fullLookInterval is the maximum time between two full checks of a tenant.
const fullLookInterval = 24 * time.Hour

// settled is the result of a full check that found everything in the desired state. It is only in memory, so a new process starts with full
// checks. See docs/decisions/0016-cost-at-rest.md.
type settled struct {
	uid         types.UID
	generation  int64
	annotations map[string]string
	status      v1.TenantStatus
	backend     *backend
	// secrets are the versions of the Secrets before the full check.
	secrets map[string]string
	until   time.Time
	// logins and users are the expected state of the systems.
	logins []expectedLogin
	users  []redis.Expected
	// turn selects what the next quick check verifies beside versions and roles: 0 is the inside of the database, n the password of login
	// n.
	turn int
}

// expectedLogin is the expected state of an app's login.
type expectedLogin struct {
	app    v1.App
	limits postgres.Limits
	record string
	given  credential.Given
}

// databaseCheck describes a quick check of a database.
type databaseCheck struct {
	tenant *v1.Tenant
	owner  func(names.App) credential.Owner
	logins []expectedLogin
	// prove is a credential whose password is verified. If it is zero, the check inspects the inside of the database.
	prove credential.Record
}

// quickDatabases are databases that support quick checks.
type quickDatabases interface {
	difference(ctx context.Context, check databaseCheck) (string, error)
}

// quickCache is a cache that supports quick checks.
type quickCache interface {
	expect(of names.App, wants v1.App, owner credential.Owner, record credential.Record) redis.Expected
	difference(ctx context.Context, all []redis.Expected) (string, error)
}

// quick does a quick check of a tenant that a full check has found in the desired state. It reports whether that was enough. A full check
// is needed if anything has changed or is in doubt. quick writes nothing.
func (p *provisioner) quick(ctx context.Context, c *change, seen *observations) (done bool, next error) {
	known := seen.settled
	if known == nil || len(c.TriggeredBy) > 0 || !known.isOf(c.Object) {
		seen.settled = nil
		return false, nil
	}
	difference, err := p.compare(ctx, c, seen)
	if wait, ok := turnOf(err); ok {
		return true, einmal.RequeueAfter(wait)
	}
	if difference == "" && err == nil {
		return true, einmal.RequeueAfter(nextLook(c.Object))
	}
	c.Log.Info("quick check found a difference, running a full check", "difference", difference, "error", err)
	seen.settled, seen.proofs = nil, nil // The full check verifies all passwords.
	return false, nil
}

// compare returns what differs from the last full check, or "".
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
		return "the TenantBackend or a Secret that it names", nil
	}
	look := &pass{backend: held, tenant: c.Object, seen: seen, now: time.Now()}
	return look.difference(ctx, seen.settled)
}

// isOf reports whether the tenant and its status are unchanged since the full check, and the full check is recent enough.
func (s *settled) isOf(tenant *v1.Tenant) bool {
	return s.uid == tenant.UID && s.generation == tenant.Generation && tenant.DeletionTimestamp == nil && time.Now().Before(s.until) &&
		maps.Equal(s.annotations, foreignAnnotations(tenant)) && equality.Semantic.DeepEqual(s.status, withoutRecords(tenant.Status))
}

// foreignAnnotations returns the annotations that the operator did not write.
func foreignAnnotations(of *v1.Tenant) map[string]string {
	found := maps.Clone(of.Annotations)
	maps.DeleteFunc(found, func(name, _ string) bool { return strings.HasPrefix(name, identity+"/") })
	return found
}

// withoutRecords returns a status without Einmal's records.
func withoutRecords(status v1.TenantStatus) v1.TenantStatus {
	kept := *status.DeepCopy()
	kept.Records = einmal.Records{}
	return kept
}

// difference returns what differs from the last full check, or "".
func (p *pass) difference(ctx context.Context, known *settled) (string, error) {
	if now, ok := p.versions(); !ok || !maps.Equal(now, known.secrets) {
		return "the Secrets or their watch", nil
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

// databaseDifference is difference for the database. Each call verifies another of the parts that need their own connection.
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
			return "credential " + login.record, nil
		}
		check.prove = record
	}
	difference, err := checked.difference(ctx, check)
	if difference == "" && err == nil && turn > 0 {
		p.seen.prove(finding{app: known.logins[turn-1].app.Name, system: database}.key(), check.prove.Generation, p.now)
	}
	return difference, err
}

// app returns the names of an app of the tenant.
func (p *pass) app(of v1.App) names.App { return names.Tenant{Name: p.tenant.Name}.App(of.Name) }

// versions returns the versions of all Secrets of the tenant's apps. It returns false if they are unknown.
func (p *pass) versions() (map[string]string, bool) {
	var records []string
	for _, app := range p.tenant.Spec.Apps {
		records = append(records, p.store.database(p.app(app)), p.store.cache(p.app(app)))
	}
	return p.store.watch.versions(records)
}

// settle returns the result of a full check, or nil if quick checks cannot verify it. The versions are from before the full check, so that
// a change during the check counts as a difference later.
func (p *pass) settle(found report, versions map[string]string) *settled {
	_, checksCache := p.cache.(quickCache)
	_, checksDatabases := p.databases.(quickDatabases)
	if p.tenant.Status.Phase != v1.Ready || p.store.generation == nil || p.cache != nil && !checksCache || p.databases != nil && !checksDatabases {
		return nil
	}
	made := &settled{
		uid: p.tenant.UID, generation: p.tenant.Generation, annotations: foreignAnnotations(p.tenant), status: withoutRecords(p.tenant.Status),
		backend: p.backend, secrets: versions,
		until: p.now.Add(time.Duration(float64(fullLookInterval) * (0.8 + 0.2*rand.Float64()))), //nolint:gosec // Not secret: jitter.
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
		made.users = append(made.users, p.cache.(quickCache).expect(p.app(app), app, p.owner(p.app(app)), outcome.Record)) //nolint:forcetypeassert // Asserted above.
	}
	made.turn = rand.IntN(len(made.logins) + 1) //nolint:gosec // Not secret: jitter.
	return made
}

// wanted returns an app of the spec.
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
