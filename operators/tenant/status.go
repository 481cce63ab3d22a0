package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// How long it is until a tenant is looked at again, if nobody changes it.
const (
	settlingWait    = 5 * time.Second
	longestSettling = time.Minute
	blockedWait     = time.Minute
	// defaultProbe is how often credentials are tried, as the CRD says too.
	defaultProbe = 10 * time.Minute
)

// tell writes what came of a pass into the status, all of it here, and says when to look again.
func tell(c *change, found report) error {
	was := c.Object.Status.DeepCopy()
	now := time.Now()
	conditions, worst := found.judge(c.Object)
	status := &c.Object.Status
	status.ObservedGeneration = c.Object.Generation
	if !found.suspended && found.unusable == nil {
		status.Apps = found.apps(c.Object, now)
	}
	for _, condition := range conditions {
		if err := c.SetCondition(condition); err != nil {
			return err
		}
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
	return found.again(c.Object, worst, now, seen)
}

// stands is what a condition says, and where it is unknown, what was known.
func stands(status *v1.TenantStatus, condition string, known bool) bool {
	if meta.IsStatusConditionPresentAndEqual(status.Conditions, condition, metav1.ConditionUnknown) {
		return known
	}
	return meta.IsStatusConditionTrue(status.Conditions, condition)
}

// area is what a condition is about.
type area struct {
	condition string
	// of is the error of a finding that the condition is about.
	of func(finding) error
	// good is the reason if there is none.
	good, message string
}

// areas are the conditions that follow from findings.
func areas() []area {
	return []area{
		{v1.ConditionDatabaseReady, func(f finding) error { return f.unusable(database) }, "Accepted", "each app that asks for it can log in to the database"},
		{v1.ConditionCacheReady, func(f finding) error { return f.unusable(caching) }, "Accepted", "each app that asks for it can log in to the cache"},
		{v1.ConditionCredentialsReady, func(f finding) error { return f.unstored() }, "Stored", "all credentials are stored"},
		{v1.ConditionInSync, func(f finding) error { return f.outOfSync() }, "AsAsked", "limits, access and passwords are as they should be"},
	}
}

// unusable is what keeps an app from logging in to a system. Where access has not settled, it cannot yet. Rights in a database that are
// incomplete do not keep it from that.
func (f finding) unusable(in system) error {
	how, _ := classify(f.level)
	if f.system == in && f.err == nil && how == waiting && !errors.Is(f.level, postgres.ErrIncomplete) {
		return f.level
	}
	if f.system != in {
		return nil
	}
	return f.err
}

// unstored is what keeps a credential from being in the store, as far as that is known.
func (f finding) unstored() error {
	if _, reason := classify(f.err); f.outcome.Generation > 0 || reason == reasonDrifted || f.unwanted {
		return nil
	}
	return f.err
}

// outOfSync is what differs from what the tenant asks for.
func (f finding) outOfSync() error {
	if f.level != nil || f.unwanted {
		return errors.Join(f.level, f.err)
	}
	return f.err
}

// judge tells the conditions, and how bad the worst finding is.
func (r report) judge(of *v1.Tenant) ([]metav1.Condition, class) {
	if r.suspended {
		return []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Suspended", Message: "spec.suspend is set, so nothing is looked at",
		}}, fine
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
		ready.Message = "all that the tenant asks for is there"
	}
	return append(all, r.rotating(of), ready), worst
}

// condition is one that follows from findings.
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

// longestMessage is how much a condition says: the API server stores no status with a message above 32768 bytes.
const longestMessage = 4096

// together is what several texts say, as far as there is room.
func together(texts []string) string {
	said := ""
	for i, text := range texts {
		if i > 0 && len(said)+len(text) > longestMessage {
			return fmt.Sprintf("%s; and %d more", said, len(texts)-i)
		}
		if i > 0 {
			said += "; "
		}
		said += text
	}
	return said
}

// verdict is what a condition says of a class.
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

// rotating is the condition that tells of rotations.
func (r report) rotating(of *v1.Tenant) metav1.Condition {
	condition := metav1.Condition{
		Type: v1.ConditionRotationInProgress, Status: metav1.ConditionFalse, Reason: "None", Message: "one credential is accepted for each app and system",
	}
	var texts []string
	for _, found := range r.findings {
		until := found.outcome.Until
		if known := principal(of, found).RetireAfter; found.err != nil && known != nil {
			until = known.Time
		}
		if until.IsZero() {
			continue
		}
		text := fmt.Sprintf("app %s, %s: the one before is accepted until %s", found.app, found.system, until.UTC().Format(time.RFC3339))
		if found.outcome.Waits {
			text += ", and then the next rotation begins"
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "Overlap", together(texts)
	}
	return condition
}

// phase is how far the tenant is, in one word.
func (r report) phase(of *v1.Tenant, worst class) v1.Phase {
	switch {
	case r.suspended:
		return v1.Suspended
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

// again says when to look again: as an error, where a system could not be asked.
func (r report) again(of *v1.Tenant, worst class, now time.Time, seen *observations) error {
	switch {
	case r.suspended:
		return nil
	case worst == unknown:
		return r.failure()
	case worst == waiting:
		return einmal.RetryAfter(seen.nextSettling(), nil)
	case worst == blocked:
		return einmal.RetryAfter(min(blockedWait, probeInterval(of)), nil)
	}
	next := nextLook(of)
	for _, found := range r.findings {
		if until := found.outcome.Until; !until.IsZero() {
			next = min(next, max(until.Sub(now), 0)+time.Second)
		}
	}
	return einmal.RetryAfter(next, nil)
}

// nextLook is how long to wait until the next look at a tenant that is as it should be.
func nextLook(of *v1.Tenant) time.Duration {
	return time.Duration(float64(probeInterval(of)) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // It spreads the load.
}

// nextSettling is how long to wait until a look finds whether something has settled: longer each time, and spread, so that many tenants that wait
// for the same do not come at once.
func (o *observations) nextSettling() time.Duration {
	wait := min(settlingWait<<min(o.waits, 10), longestSettling)
	o.waits++
	return time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64())) //nolint:gosec // It spreads the load.
}

// failure is what could not be asked.
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

// announce tells in events what has become another.
func announce(c *change, was *v1.TenantStatus) {
	is := c.Object.Status
	ready := meta.FindStatusCondition(is.Conditions, v1.ConditionReady)
	if is.Phase != was.Phase {
		switch is.Phase {
		case v1.Blocked, v1.Degraded:
			c.Event(einmal.Warning, ready.Reason, "%s", ready.Message)
		case v1.Ready:
			c.Event(einmal.Normal, "Ready", "All that the tenant asks for is there.")
		case v1.Pending, v1.Provisioning, v1.Rotating, v1.Suspended, v1.Deleting:
		}
	}
	for _, app := range is.Apps {
		for where, now := range map[system]*v1.Principal{database: app.Database, caching: app.Cache} {
			before := principal(&v1.Tenant{Status: *was}, finding{app: app.Name, system: where})
			if now != nil && before.Generation > 0 && now.Generation > before.Generation {
				c.Event(einmal.Normal, "Rotated", "App %s has credential %d for its %s, by the request %q.", app.Name, now.Generation, where, now.RequestID)
			}
		}
	}
}

// setDeleting tells why a tenant is not gone yet.
func setDeleting(of *v1.Tenant, err error) {
	of.Status.Phase = v1.Deleting
	_, reason := classify(err)
	meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{
		Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: of.Generation,
		Message: fmt.Sprintf("not everything is removed yet: %s", short(err)),
	})
}
