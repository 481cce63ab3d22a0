package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// How long the operator waits before it checks a tenant again, unless the Tenant changes.
const (
	settlingWait    = 5 * time.Second
	longestSettling = time.Minute
	blockedWait     = time.Minute
	firstRetry      = time.Second
	longestRetry    = 5 * time.Minute
	// defaultProbe is how often credentials are verified. The CRD has the same default.
	defaultProbe = 10 * time.Minute
)

// tell is the only function that writes the status. It writes the result of a reconciliation and returns when to reconcile next.
func tell(c *change, found report) error {
	was := c.Object.Status.DeepCopy()
	now := time.Now()
	conditions, worst := found.judge(c.Object)
	status := &c.Object.Status
	status.ObservedGeneration = c.Object.Generation
	if !found.suspended && !found.revoking && found.unusable == nil {
		status.Apps = found.apps(c.Object, now)
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = c.Object.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	status.DBReady = stands(status, v1.ConditionDatabaseReady, was.DBReady)
	status.RedisReady = stands(status, v1.ConditionCacheReady, was.RedisReady)
	if meta.IsStatusConditionTrue(status.Conditions, v1.ConditionInSync) && !found.suspended {
		status.Plan = c.Object.Spec.Plan
	}
	status.Phase = found.phase(c.Object, worst)
	announce(c, was)
	seen := einmal.Memo[observations](c)
	if worst != waiting {
		seen.waits = 0
	}
	if worst != unknown {
		seen.failures = 0
	}
	return found.again(c.Object, worst, now, seen)
}

// stands reports whether a condition is True. If the condition is Unknown, it returns the last known value.
func stands(status *v1.TenantStatus, condition string, known bool) bool {
	if meta.IsStatusConditionPresentAndEqual(status.Conditions, condition, metav1.ConditionUnknown) {
		return known
	}
	return meta.IsStatusConditionTrue(status.Conditions, condition)
}

// area describes a condition that is computed from findings.
type area struct {
	condition string
	// of returns the error of a finding that concerns the condition.
	of func(finding) error
	// good and message are the reason and the message of the condition if no finding has an error.
	good, message string
}

// areas returns the conditions that are computed from findings.
func areas() []area {
	return []area{
		{v1.ConditionDatabaseReady, func(f finding) error { return f.unusable(database) }, "Accepted", "all apps can log in to the database"},
		{v1.ConditionCacheReady, func(f finding) error { return f.unusable(caching) }, "Accepted", "all apps can log in to the cache"},
		{v1.ConditionCredentialsReady, func(f finding) error { return f.unstored() }, "Stored", "all credentials are stored"},
		{v1.ConditionInSync, func(f finding) error { return f.outOfSync() }, "AsAsked", "limits, access and passwords are in the desired state"},
	}
}

// unusable returns the error that prevents the app from logging in to a system. This includes access that has not settled yet. Incomplete
// rights in a database do not prevent a login, and neither do users that a node has not saved, sessions that do not end, nor a copy for readers that
// cannot be written.
func (f finding) unusable(in system) error {
	how, _ := classify(f.level)
	usable := errors.Is(f.level, postgres.ErrIncomplete) || errors.Is(f.level, redis.ErrUnsaved)
	foreign := errors.Is(f.level, credential.ErrConflict) // A database of others.
	if f.system == in && (f.err == nil || errors.Is(f.err, credential.ErrUnusable)) && (how == waiting && !usable || foreign) {
		return f.level
	}
	if f.system != in || f.keeps() || errors.Is(f.err, postgres.ErrSessions) && f.outcome.Generation > 0 {
		return nil
	}
	return f.err
}

// keeps reports whether readers keep a credential that the system accepts, because they cannot be given the next one.
func (f finding) keeps() bool { return f.before > 0 && errors.Is(f.err, credential.ErrUnwritable) }

// unstored returns the error that prevents a credential from being stored, if the store is the cause.
func (f finding) unstored() error {
	if _, reason := classify(f.err); f.outcome.Generation > 0 || reason == reasonDrifted || f.unwanted {
		return nil
	}
	return f.err
}

// outOfSync returns the errors about differences from the desired state.
func (f finding) outOfSync() error {
	if f.level != nil || f.unwanted {
		return errors.Join(f.level, f.err)
	}
	if errors.Is(f.err, credential.ErrUnusable) {
		return nil // What prevents the login is not the operator's.
	}
	return f.err
}

// judge returns the conditions and the worst class of all findings.
func (r report) judge(of *v1.Tenant) ([]metav1.Condition, class) {
	if r.suspended {
		return []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Suspended", Message: "spec.suspend is set: the operator does not check this tenant",
		}}, fine
	}
	if r.revoking {
		return []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: reasonRevoking,
			Message: "a rotation in place is in progress: logins fail until readers have the new credentials",
		}}, waiting
	}
	var all []metav1.Condition
	worst, reason, said := fine, "Ready", []string(nil)
	for _, about := range areas() {
		condition, how, texts := r.condition(about)
		all = append(all, condition)
		if how > worst {
			worst, reason, said = how, condition.Reason, texts
		}
	}
	ready := metav1.Condition{Type: v1.ConditionReady, Status: verdict(worst), Reason: reason, Message: together(said)}
	if worst == fine {
		ready.Message = "all resources of the tenant are ready"
	}
	return append(all, r.rotating(of), ready), worst
}

// condition computes one condition from the findings. It also returns the worst class and the message of each error.
func (r report) condition(about area) (metav1.Condition, class, []string) {
	worst, reason := fine, about.good
	var texts []string
	consider := func(err error, text string) {
		how, why := classify(err)
		if how == fine {
			return
		}
		if texts = append(texts, text); how > worst {
			worst, reason = how, why
		}
	}
	if r.unusable != nil {
		consider(r.unusable, r.unusable.Error())
	}
	for _, found := range r.findings {
		if err := about.of(found); err != nil {
			consider(err, found.say(err))
		}
	}
	condition := metav1.Condition{Type: about.condition, Status: verdict(worst), Reason: reason, Message: together(texts)}
	if worst == fine {
		condition.Message = about.message
	}
	return condition, worst, texts
}

// longestMessage limits the message of a condition, in bytes. The API server rejects a status with a message above 32768 bytes.
const longestMessage = 4096

// together joins texts up to longestMessage and says how many are left out.
func together(texts []string) string {
	said := ""
	for i, text := range texts {
		if i > 0 && len(said)+len(text) > longestMessage {
			return fmt.Sprintf("%s; %d more", said, len(texts)-i)
		}
		if i > 0 {
			said += "; "
		}
		said += text
	}
	return said
}

// verdict returns the status of a condition for a class.
func verdict(of class) metav1.ConditionStatus {
	switch of {
	case fine:
		return metav1.ConditionTrue
	case unknown:
		return metav1.ConditionUnknown
	case waiting, blocked:
	}
	return metav1.ConditionFalse
}

// rotating returns the condition RotationInProgress.
func (r report) rotating(of *v1.Tenant) metav1.Condition {
	condition := metav1.Condition{
		Type: v1.ConditionRotationInProgress, Status: metav1.ConditionFalse, Reason: "None", Message: "no rotation is in progress",
	}
	var texts []string
	for _, found := range r.findings {
		until := found.outcome.Until
		if known := principal(of, found).RetireAfter; !found.told() && known != nil {
			until = known.Time
		}
		if until.IsZero() {
			continue
		}
		text := fmt.Sprintf("app %s, %s: the previous credential is accepted until %s", found.app, found.system, until.UTC().Format(time.RFC3339))
		if found.outcome.Waits {
			text += ", then the next rotation starts"
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "Overlap", together(texts)
	}
	return condition
}

// phase returns the phase of the tenant.
func (r report) phase(of *v1.Tenant, worst class) v1.Phase {
	switch {
	case r.suspended:
		return v1.Suspended
	case r.revoking:
		return v1.Rotating
	case worst == blocked:
		return v1.Blocked
	case worst == fine && meta.IsStatusConditionTrue(of.Status.Conditions, v1.ConditionRotationInProgress):
		return v1.Rotating
	case worst == fine:
		return v1.Ready
	case of.Status.Plan == "":
		return v1.Provisioning // It was never ready.
	default:
		return v1.Degraded
	}
}

// again returns when to reconcile next: within the probeInterval, also while something settles or cannot be queried, because a system that comes
// back may accept what was revoked in the meantime.
func (r report) again(of *v1.Tenant, worst class, now time.Time, seen *observations) error {
	switch {
	case r.suspended:
		return nil
	case r.revoking:
		return einmal.RequeueAfter(0)
	case worst == unknown:
		return einmal.RetryAfter(min(seen.nextRetry(), probeInterval(of)), r.failure())
	case worst == waiting:
		return einmal.RequeueAfter(min(seen.nextSettling(), probeInterval(of)))
	case worst == blocked:
		return einmal.RequeueAfter(min(blockedWait, probeInterval(of)))
	}
	next := nextLook(of)
	for _, found := range r.findings {
		if until := found.outcome.Until; !until.IsZero() {
			next = min(next, max(until.Sub(now), 0)+time.Second)
		}
	}
	return einmal.RequeueAfter(next)
}

// nextLook returns how long to wait before the next check of a tenant that is ready.
func nextLook(of *v1.Tenant) time.Duration {
	return time.Duration(float64(probeInterval(of)) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // Not secret: jitter.
}

// nextSettling returns how long to wait before the operator checks again whether something has settled. The wait grows and has jitter, so
// that many tenants that wait for the same system are not checked at the same time.
func (o *observations) nextSettling() time.Duration {
	wait := min(settlingWait<<min(o.waits, 10), longestSettling)
	o.waits++
	return time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // Not secret: jitter.
}

// nextRetry returns how long to wait after an error. The wait grows as Einmal's own does, and has jitter.
func (o *observations) nextRetry() time.Duration {
	wait := min(firstRetry<<min(o.failures, 10), longestRetry)
	o.failures++
	return time.Duration(float64(wait) * (0.8 + 0.2*rand.Float64())) //nolint:gosec // Not secret: jitter.
}

// failure returns the errors of the systems that could not be queried.
func (r report) failure() error {
	failed := []error{r.unusable}
	for _, found := range r.findings {
		if how, _ := classify(found.worst()); how == unknown {
			failed = append(failed, fmt.Errorf("app %s, %s: %w", found.app, found.system, found.worst()))
		}
	}
	return errors.Join(failed...)
}

func probeInterval(of *v1.Tenant) time.Duration {
	if given := of.Spec.Credentials.ProbeInterval; given != nil {
		return given.Duration
	}
	return defaultProbe
}

// announce records an event for each transition that a person should notice.
func announce(c *change, was *v1.TenantStatus) {
	is := c.Object.Status
	ready := meta.FindStatusCondition(is.Conditions, v1.ConditionReady)
	if is.Phase != was.Phase {
		switch is.Phase {
		case v1.Blocked, v1.Degraded:
			c.Event(einmal.EventWarning, ready.Reason, "%s", ready.Message)
		case v1.Ready:
			c.Event(einmal.EventNormal, "Ready", "All resources of the tenant are ready.")
		case v1.Pending, v1.Provisioning, v1.Rotating, v1.Suspended, v1.Deleting:
		}
	}
	for _, app := range is.Apps {
		for where, now := range map[system]*v1.Principal{database: app.Database, caching: app.Cache} {
			before := principal(&v1.Tenant{Status: *was}, finding{app: app.Name, system: where})
			if now != nil && before.Generation > 0 && now.Generation > before.Generation {
				c.Event(einmal.EventNormal, "Rotated", "App %s: %s credential rotated to generation %d (request %q).", app.Name, where, now.Generation, now.RequestID)
			}
			if now != nil && now.Restorations > 0 && !now.RestoredAt.Equal(before.RestoredAt) {
				c.Event(einmal.EventWarning, "PasswordRestored", "App %s: the %s rejected the stored password of user %s, so another client had changed it. It was set again.",
					app.Name, where, now.User)
			}
		}
	}
}

// setDeleting writes into the status why a deleted Tenant still exists.
func setDeleting(of *v1.Tenant, err error) {
	of.Status.Phase = v1.Deleting
	_, reason := classify(err)
	meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{
		Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: of.Generation,
		Message: fmt.Sprintf("deletion is not complete: %s", short(err)),
	})
}
