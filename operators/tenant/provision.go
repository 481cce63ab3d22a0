package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// provisioner reconciles and releases Tenants.
type provisioner struct{ backends *backends }

// change is the argument of the handlers of Tenants.
type change = einmal.Change[v1.Tenant]

// provision reconciles a Tenant: it checks each app in each system and creates or corrects what differs. It depends on no memory, so it
// also works after the status or the process memory is lost. It writes its results into the status with tell.
func (p *provisioner) provision(ctx context.Context, c *change) error {
	seen := einmal.Memo[observations](c)
	if c.Object.Spec.Suspend {
		seen.settled = nil
		return tell(c, report{suspended: true})
	}
	if done, next := p.quick(ctx, c, seen); done {
		return next
	}
	if startsRevocation(c.Object) {
		return tell(c, report{revoking: true})
	}
	held, release, err := p.backends.work(ctx, c.Client, c.Object.Spec.BackendRef.Name)
	if wait, ok := turnOf(err); ok {
		return einmal.RequeueAfter(wait)
	}
	if err != nil {
		return tell(c, report{unusable: err})
	}
	defer release()
	look := &pass{backend: held, tenant: c.Object, seen: seen, now: time.Now()}
	before, known := look.versions()
	found := look.run(ctx)
	next := tell(c, found)
	if after, still := look.versions(); known && still && maps.Equal(before, after) && !seen.search {
		seen.settled = look.settle(found, before)
	}
	return next
}

// startsRevocation reports whether a rotation in place is about to begin while the status says that the tenant is ready. The old passwords are rejected
// before readers have the new ones, so the status must say first that the tenant is not ready.
func startsRevocation(of *v1.Tenant) bool {
	rotation := of.Spec.Credentials.Rotation
	if rotation.Strategy != v1.InPlace || rotation.RequestID == "" || !meta.IsStatusConditionTrue(of.Status.Conditions, v1.ConditionReady) {
		return false
	}
	for _, app := range of.Status.Apps {
		for _, known := range []*v1.Principal{app.Database, app.Cache} {
			if known != nil && known.Generation > 0 && known.RequestID != rotation.RequestID && known.RetireAfter == nil {
				return true
			}
		}
	}
	return false
}

// pass is one reconciliation of a Tenant.
type pass struct {
	*backend

	tenant *v1.Tenant
	seen   *observations
	now    time.Time
}

// run brings each system to the desired state and returns the results. A failure in one system does not stop the others.
func (p *pass) run(ctx context.Context) report {
	var found report
	p.shutUnwanted(ctx)
	p.revoke(ctx)
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

// revoke makes the systems reject the credentials that a rotation in place replaces, before anything is asked that a tenant can hold up. Converge
// returns its errors again.
func (p *pass) revoke(ctx context.Context) {
	for _, app := range p.tenant.Spec.Apps {
		if p.hasDatabase(app) {
			found, user, _ := p.login(app)
			p.revokeUser(ctx, found, user)
		}
	}
	for _, app := range p.tenant.Spec.Apps { // A cache that does not answer delays no database.
		if p.hasCache(app) {
			found, user, _ := p.cacheUser(app)
			p.revokeUser(ctx, found, user)
		}
	}
}

func (p *pass) revokeUser(ctx context.Context, in finding, user credential.User) {
	if p.revokes(in) {
		_ = user.Revoke(ctx)
	}
}

// revokes reports whether a rotation in place is requested and not answered.
func (p *pass) revokes(in finding) bool {
	rotation := p.tenant.Spec.Credentials.Rotation
	return rotation.Strategy == v1.InPlace && rotation.RequestID != "" && rotation.RequestID != principal(p.tenant, in).RequestID
}

func (p *pass) hasDatabase(app v1.App) bool {
	return p.databases != nil && enabled(app.Database.Enabled)
}

func (p *pass) hasCache(app v1.App) bool { return p.cache != nil && enabled(app.Cache.Enabled) }

// enabled returns the value of a switch. The default is true.
func enabled(given *bool) bool { return given == nil || *given }

// shared creates what all apps of the tenant share in the database.
func (p *pass) shared(ctx context.Context) error {
	if !slices.ContainsFunc(p.tenant.Spec.Apps, p.hasDatabase) {
		return nil
	}
	of := names.Tenant{Name: p.tenant.Name}
	_, err := p.databases.tenant(of, p.tenant.Spec).Converge(ctx, p.owner(names.App{Tenant: of.Name}))
	return err
}

// login returns the credential user of an app in the database, and its logins.
func (p *pass) login(app v1.App) (finding, credential.User, logins) {
	of := names.Tenant{Name: p.tenant.Name}.App(app.Name)
	found := finding{
		app: app.Name, system: database, record: p.store.database(of), readers: p.store.prefix + p.store.database(of), database: names.Tenant{Name: p.tenant.Name}.Database(),
	}
	user, both := p.user(of, found), of.Logins()
	found.before = user.Generation
	system := p.databases.logins(of, p.limits(app), app, p.tenant.Spec)
	user.System, user.Username, user.Alternate = system, both[0], both[1]
	return found, user, system
}

// database reconciles the login of an app to the database.
func (p *pass) database(ctx context.Context, app v1.App, shared error) finding {
	found, user, system := p.login(app)
	// A database owner can block the rights in the database. That must not prevent rotation or revocation of credentials.
	if shared != nil && !errors.Is(shared, postgres.ErrIncomplete) && (found.before == 0 || !p.revokes(found)) {
		found.err = shared
		return found
	}
	found.outcome, found.err = p.converge(ctx, found, user)
	_, level := system.Converge(ctx, user.Owner, user.Username, user.Alternate)
	found.level = errors.Join(level, shared, p.contest(found))
	return found
}

// cacheUser returns the credential user of an app in the cache, and its system.
func (p *pass) cacheUser(app v1.App) (finding, credential.User, cacheUsers) {
	of := names.Tenant{Name: p.tenant.Name}.App(app.Name)
	found := finding{app: app.Name, system: caching, record: p.store.cache(of), readers: p.store.prefix + p.store.cache(of)}
	user := p.user(of, found)
	found.before = user.Generation
	system, username := p.cache.users(of, app, p.tenant.Spec)
	user.System, user.Username = system, username
	return found, user, system
}

// cached reconciles the cache user of an app.
func (p *pass) cached(ctx context.Context, app v1.App) finding {
	found, user, system := p.cacheUser(app)
	found.outcome, found.err = p.converge(ctx, found, user)
	_, level := system.ConvergeAccess(ctx, user.Owner, user.Username)
	found.level = errors.Join(level, p.contest(found))
	return found
}

// limits returns the limits of the plan, with the overrides of the app.
func (p *pass) limits(app v1.App) postgres.Limits {
	of := p.plans.Standard
	if p.tenant.Spec.Plan == v1.Premium {
		of = p.plans.Premium
	}
	if app.Database.ConnectionLimit != nil {
		of.ConnectionLimit = *app.Database.ConnectionLimit
	}
	return postgres.Limits{
		ConnectionLimit:  max(0, int(of.ConnectionLimit)), // -1 in the spec is 0 in postgres.Limits.
		StatementTimeout: length(of.StatementTimeout), IdleInTransactionTimeout: length(of.IdleInTransactionTimeout),
	}
}

// length returns an optional duration, or 0.
func length(of *metav1.Duration) time.Duration {
	if of == nil {
		return 0
	}
	return of.Duration
}

// user returns the credential user of an app, without the system.
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
			// A rotation request that is newer than the last known credential also allows a new credential.
			ReplaceMissing: staysMissing(known, p.now) && (spec.MissingCredentialPolicy == v1.MissingRotate ||
				known.Generation > 0 && rotation.RequestID != "" && rotation.RequestID != known.RequestID),
		},
		InPlace: rotation.Strategy == v1.InPlace,
	}
	if rotation.Overlap != nil {
		user.Overlap = rotation.Overlap.Duration
	}
	// Verifying a database password needs a connection, so it is not done in every reconciliation. Caches need no login for it.
	user.Proven = in.system == database && p.seen.proven(in.key(), user.Generation, p.now.Add(-probeInterval(p.tenant)*4/5))
	return user
}

// converge converges a user and remembers whether the password was verified.
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

// observations is what the process remembers of a tenant. Only the cost of checks and the time of retries depend on it.
type observations struct {
	proofs map[string]proof
	// settled is the result of the last full check. It is nil if the next check must be a full one.
	settled *settled
	// search is true if apps that the status does not list have to be looked for: see pass.known.
	search bool
	// waits counts the consecutive reconciliations that waited for something to settle.
	waits int
	// failures counts the consecutive reconciliations in which a system could not be queried.
	failures int
}

type proof struct {
	generation int
	at         time.Time
}

// A credential counts as missing only after several checks. A store can be empty for some seconds, for example during a restore, and need not
// be consistent at once.
const (
	missesNeeded = 3
	missingFor   = time.Minute
)

// missed counts another check that did not find the credential. The count is in the status, so that it survives a restart. If the status is
// lost, the count starts again.
func missed(known v1.Principal, now time.Time) v1.Principal {
	if known.MissingSince == nil {
		known.MissingSince = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	known.MissingLooks = min(known.MissingLooks+1, missesNeeded)
	return known
}

// staysMissing reports whether a credential was missing in enough checks and for long enough.
func staysMissing(known v1.Principal, now time.Time) bool {
	return known.MissingSince != nil && known.MissingLooks >= missesNeeded && now.Sub(known.MissingSince.Time) >= missingFor
}

// proven reports whether a password was accepted after the given time.
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

// suspected wraps an error that may pass without action. The operator checks again.
type suspected struct{ error }

// Unwrap returns the suspected error.
func (s suspected) Unwrap() error { return s.error }
