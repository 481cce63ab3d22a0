package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// provisioner gives tenants what they ask for, and takes it back.
type provisioner struct{ backends *backends }

// change is what a handler of tenants is given.
type change = einmal.Change[v1.Tenant]

// provision looks at all that a tenant asks for, in each system by itself, and does what is missing. It needs no memory: a run after whatever
// was lost finds what is there. The status says what came of it, and is written in one place.
func (p *provisioner) provision(ctx context.Context, c *change) error {
	seen := einmal.Memo[observations](c)
	if c.Object.Spec.Suspend {
		seen.settled = nil
		return tell(c, report{suspended: true})
	}
	if done, next := p.quick(ctx, c, seen); done {
		return next
	}
	held, release, err := p.backends.work(ctx, c.Client, c.Object.Spec.BackendRef.Name)
	if wait, ok := turnOf(err); ok {
		return einmal.RetryAfter(wait, nil)
	}
	if err != nil {
		return tell(c, report{unusable: err})
	}
	defer release()
	look := &pass{backend: held, tenant: c.Object, seen: seen, now: time.Now()}
	before, known := look.versions()
	found := look.run(ctx)
	next := tell(c, found)
	if after, still := look.versions(); known && still && maps.Equal(before, after) {
		seen.settled = look.settle(found, before)
	}
	return next
}

// pass is one look at a tenant.
type pass struct {
	*backend

	tenant *v1.Tenant
	seen   *observations
	now    time.Time
}

// run brings the world to what the tenant asks for, as far as that goes, and tells what came of each part.
func (p *pass) run(ctx context.Context) report {
	var found report
	shared := p.shared(ctx)
	for _, app := range p.tenant.Spec.Apps {
		if p.hasDatabase(app) {
			found.findings = append(found.findings, p.database(ctx, app, shared))
		}
		if p.hasCache(app) {
			found.findings = append(found.findings, p.cached(ctx, app))
		}
	}
	if p.tenant.Spec.DeletionPolicy == v1.DeletionDelete {
		found.findings = append(found.findings, p.unwanted(ctx)...)
	}
	return found
}

func (p *pass) hasDatabase(app v1.App) bool {
	return p.databases != nil && enabled(app.Database.Enabled)
}

func (p *pass) hasCache(app v1.App) bool { return p.cache != nil && enabled(app.Cache.Enabled) }

// enabled is what a switch says; it is on if nothing is said.
func enabled(given *bool) bool { return given == nil || *given }

// shared makes what all apps of the tenant share in the database.
func (p *pass) shared(ctx context.Context) error {
	if !slices.ContainsFunc(p.tenant.Spec.Apps, p.hasDatabase) {
		return nil
	}
	of := names.Tenant{Name: p.tenant.Name}
	_, err := p.databases.tenant(of, p.tenant.Spec).Converge(ctx, p.owner(names.App{Tenant: of.Name}))
	return err
}

// database makes what an app has in the database.
func (p *pass) database(ctx context.Context, app v1.App, shared error) finding {
	of := names.Tenant{Name: p.tenant.Name}.App(app.Name)
	found := finding{
		app: app.Name, system: database, record: p.store.database(of), readers: p.store.prefix + p.store.database(of), database: names.Tenant{Name: p.tenant.Name}.Database(),
	}
	// What the owner of the database can hold up keeps no credential from being rotated or revoked.
	if shared != nil && !errors.Is(shared, postgres.ErrIncomplete) {
		found.err = shared
		return found
	}
	both := of.Logins()
	system := p.databases.logins(of, p.limits(app), app, p.tenant.Spec)
	user := p.user(of, found)
	user.System, user.Username, user.Alternate = system, both[0], both[1]
	found.outcome, found.err = p.converge(ctx, found, user)
	_, level := system.Converge(ctx, user.Owner, both[:]...)
	found.level = errors.Join(level, shared)
	return found
}

// cached makes what an app has in the cache.
func (p *pass) cached(ctx context.Context, app v1.App) finding {
	of := names.Tenant{Name: p.tenant.Name}.App(app.Name)
	found := finding{app: app.Name, system: caching, record: p.store.cache(of), readers: p.store.prefix + p.store.cache(of)}
	user := p.user(of, found)
	if app.Cache.Scripting, found.err = p.scripting(ctx, of, app, principal(p.tenant, found)); found.err != nil {
		return found
	}
	found.scripting = app.Cache.Scripting
	system, username := p.cache.users(of, app, p.tenant.Spec)
	user.System, user.Username = system, username
	found.outcome, found.err = p.converge(ctx, found, user)
	_, found.level = system.ConvergeAccess(ctx, user.Owner, username)
	return found
}

// scripting says whether an app's user of the cache may run scripts. Where the spec does not say it, a user keeps what it has: earlier versions
// of the operator gave the right to every user that writes, and wrote nothing about it into the status. A new user does not get it.
func (p *pass) scripting(ctx context.Context, of names.App, app v1.App, known v1.Principal) (v1.Scripting, error) {
	switch {
	case app.Cache.Profile == v1.AccessReadOnly:
		return v1.ScriptingDenied, nil
	case app.Cache.Scripting != "":
		return app.Cache.Scripting, nil
	case known.Scripting != "":
		return known.Scripting, nil
	case known.Generation > 0:
		return v1.ScriptingAllowed, nil
	}
	system, username := p.cache.users(of, app, p.tenant.Spec)
	has, err := system.Scripting(ctx, p.owner(of), username)
	if err != nil || !has {
		return v1.ScriptingDenied, err
	}
	return v1.ScriptingAllowed, nil
}

// limits are those of the plan, but for what the app says itself.
func (p *pass) limits(app v1.App) postgres.Limits {
	of := p.plans.Standard
	if p.tenant.Spec.Plan == v1.Premium {
		of = p.plans.Premium
	}
	if app.Database.ConnectionLimit != nil {
		of.ConnectionLimit = *app.Database.ConnectionLimit
	}
	return postgres.Limits{
		ConnectionLimit:  max(0, int(of.ConnectionLimit)), // There 0 is what -1 is here.
		StatementTimeout: length(of.StatementTimeout), IdleInTransactionTimeout: length(of.IdleInTransactionTimeout),
	}
}

// length is a time that may be left out.
func length(of *metav1.Duration) time.Duration {
	if of == nil {
		return 0
	}
	return of.Duration
}

// user is who the app logs in as, without the system.
func (p *pass) user(of names.App, in finding) credential.User {
	spec := p.tenant.Spec
	known := principal(p.tenant, in)
	rotation := spec.Credentials.Rotation
	user := credential.User{
		Once: credential.Once{
			Store: p.store, Name: in.record, Owner: p.owner(of), Request: rotation.RequestID, Generation: int(known.Generation),
		},
		Policy: credential.Policy{
			LeaveDrift: spec.DriftPolicy == v1.DriftReport, Adopt: spec.AdoptionPolicy == v1.AdoptionAdopt,
			// A rotation that is asked for since the last credential was seen is a way out too: it asks for another credential.
			ReplaceMissing: staysMissing(known, p.now) && (spec.MissingCredentialPolicy == v1.MissingRotate ||
				known.Generation > 0 && rotation.RequestID != "" && rotation.RequestID != known.RequestID),
		},
		InPlace: rotation.Strategy == v1.InPlace,
	}
	if rotation.Overlap != nil {
		user.Overlap = rotation.Overlap.Duration
	}
	// A password of the database is tried by a login, which costs it one: not at each look. Caches tell without.
	user.Proven = in.system == database && p.seen.proven(in.key(), user.Generation, p.now.Add(-probeInterval(p.tenant)*4/5))
	return user
}

// converge converges a user, and notes what was seen.
func (p *pass) converge(ctx context.Context, found finding, user credential.User) (credential.Outcome, error) {
	outcome, err := user.Converge(ctx)
	switch {
	case err == nil && outcome.Verified:
		p.seen.prove(found.key(), outcome.Generation, p.now)
	case err != nil:
		p.seen.prove(found.key(), 0, p.now)
	}
	if errors.Is(err, credential.ErrMissing) && !staysMissing(missed(principal(p.tenant, found), p.now), p.now) {
		err = suspected{err}
	}
	return outcome, err
}

// observations are what is remembered of a tenant as long as the process runs. Nothing depends on it but how soon something is told or tried
// again, and how much a look costs.
type observations struct {
	proofs map[string]proof
	// settled is what the last full look has left; nil if the next look is a full one.
	settled *settled
	// waits counts the looks in a row that had to wait until something settles.
	waits int
}

type proof struct {
	generation int
	at         time.Time
}

// What it takes until a credential counts as missing. A store can be empty for some seconds, as during a restore, and is not promised to show at
// once what it has.
const (
	missesNeeded = 3
	missingFor   = time.Minute
)

// missed notes another look that did not find the credential. The status keeps it, so that a restart of the operator does not forget it, and a
// status that is lost only starts again.
func missed(known v1.Principal, now time.Time) v1.Principal {
	if known.MissingSince == nil {
		known.MissingSince = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	known.MissingLooks = min(known.MissingLooks+1, missesNeeded)
	return known
}

// staysMissing reports whether a credential was missing often and long enough.
func staysMissing(known v1.Principal, now time.Time) bool {
	return known.MissingSince != nil && known.MissingLooks >= missesNeeded && now.Sub(known.MissingSince.Time) >= missingFor
}

// proven tells whether a password was accepted since a time.
func (o *observations) proven(key string, generation int, since time.Time) bool {
	last := o.proofs[key]
	return generation > 0 && last.generation == generation && last.at.After(since)
}

func (o *observations) prove(key string, generation int, at time.Time) {
	if o.proofs == nil {
		o.proofs = map[string]proof{}
	}
	o.proofs[key] = proof{generation, at}
}

// suspected is an error that may pass by itself, and is looked at again.
type suspected struct{ error }

// Unwrap returns the error that it may be.
func (s suspected) Unwrap() error { return s.error }
