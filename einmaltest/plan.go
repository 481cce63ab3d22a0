package einmaltest

import (
	"maps"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// Dimension is a group of faults. Without leaves one out.
type Dimension string

// The dimensions. A point is a request or an effect of the operator: see Explore. A fault at a point happens once.
const (
	// Crashes end the process before a point, or after it with the answer lost. Another process starts at once, or five minutes later.
	Crashes Dimension = "crashes"
	// Answers refuse a point (500, 403, or 404 because the kind is not served), or lose its answer. The process goes on.
	Answers Dimension = "answers"
	// Refusals answer a request as a real API server does that is busy or restricted: 429 with Retry-After, 503 for all points during 20
	// seconds, 403 of a webhook or of a quota, and 409 on an update. Or they refuse a point three times in a row with 500.
	Refusals Dimension = "refusals"
	// Hangs leave a point without an answer until its deadline: it is carried out, or not.
	Hangs Dimension = "hangs"
	// Outages let nothing reach the API server for two minutes, and break watches.
	Outages Dimension = "outages"
	// Events deliver a watch event twice, after the next one, or lose it with the watch.
	Events Dimension = "events"
	// StaleCache delivers all watch events one second late, or 30 seconds late.
	StaleCache Dimension = "stale cache"
	// OtherWriters write into the metadata and the status of a handled object just before the operator writes.
	OtherWriters Dimension = "other writers"
	// Children are edited (an annotation and a label) by another writer just before a handler writes them, and replaced or deleted just before a
	// handler reads or writes them. Secrets, and what the scenario has written into, are not deleted: they may hold what cannot be made again. Children
	// that control objects themselves, such as a StatefulSet with Pods, are neither replaced nor deleted.
	Children Dimension = "children"
	// Drift changes children while nothing else happens: in the middle of each World.Advance of at least two minutes, and after the scenario. Another
	// writer edits a field that the operator has written, deletes the child, or deletes it and creates it again with the same content. It changes only
	// children of kinds that a handler owns with einmal.Owns, since the operator learns of no others, and none that control objects themselves, such
	// as a StatefulSet with Pods. Secrets, and those whose spec or metadata the scenario has written, are not edited and not deleted.
	Drift Dimension = "drift"
	// Users edit or delete the handled object in the middle of a handler, if it is clear which one it is. An edit sets an annotation, and makes the next
	// World.Patch of the scenario on that object. The final state depends on what the user did, so it is not checked: only effects, permissions
	// and what the user wrote.
	Users Dimension = "users"
	// SlowCalls lets each request and effect of handlers take a second, so that handlers of different objects overlap.
	SlowCalls Dimension = "slow calls"
	// Wipes remove annotations, finalizers and records of the operator, while it runs and while it is down, or replace the records by
	// other text while it runs.
	Wipes Dimension = "wipes"
	// OlderRecords puts back records that the operator has written earlier, while it runs and while it is down, as kubectl rollout undo and
	// manifests that were exported earlier do. If the operator was down, handlers can run again with the newest object, and an effect can wait for a
	// person. So the final state is not checked then: only effects, generated values and permissions.
	OlderRecords Dimension = "older records"
	// ForgedRecords writes a record into an annotation of each handled object that has its record in the status, while the operator runs and while it
	// is down, as a user can who may only annotate. It claims that all is done, also the deletion, and what steps and effects returned.
	ForgedRecords Dimension = "forged records"
	// Replicas runs a second replica of the operator beside the first, without leader election.
	Replicas Dimension = "replicas"
	// Standby runs a second replica with leader election. When the first crashes or stops, the second takes over. In some of these
	// runs the clocks of the replicas differ by three minutes.
	Standby Dimension = "standby"
	// Updates replace the operator by a rolling update with leader election, with and without the way back. World.UpgradeFrom says what
	// the previous version is; without it the version is updated to itself.
	Updates Dimension = "updates"
	// Restores restore the cluster while the operator runs, or end the process and do it while it is down: all resource versions are lower then. What the
	// objects hold is the same.
	Restores Dimension = "restores"
	// Operators runs another operator that handles the same objects.
	Operators Dimension = "operators"
	// Clocks moves the API server's clock by five minutes.
	Clocks Dimension = "clocks"
	// Recovery plays a second fault at points that exist only after a first one.
	Recovery Dimension = "recovery"
)

// trouble is a kind of fault and the dimension that it belongs to.
type trouble struct {
	of   Dimension
	kind simulation.Kind
}

// allTheTime lists the faults that last for the whole run.
func allTheTime() []trouble {
	return []trouble{
		{StaleCache, simulation.StaleCache},
		{Replicas, simulation.TwoReplicas},
		{Standby, simulation.Standby},
		{StaleCache, simulation.OldCache},
		{SlowCalls, simulation.SlowCalls},
		{Operators, simulation.TwoOperators},
	}
}

// atPoints lists the faults that are tried at every point, in this order.
func atPoints() []trouble {
	return []trouble{
		{Crashes, simulation.CrashBefore},
		{Crashes, simulation.CrashAfter},
		{Crashes, simulation.CrashThenDown},
		{Answers, simulation.AnswerLost},
		{Answers, simulation.Refused},
		{Answers, simulation.Forbidden},
		{Answers, simulation.NotServed},
		{Wipes, simulation.BookkeepingWiped},
		{Wipes, simulation.RecordReplaced},
		{Wipes, simulation.CrashThenWiped},
		{OtherWriters, simulation.AnotherWriter},
		{Outages, simulation.Unreachable},
	}
}

// atSomePoints lists the faults of which Explore tries as many as its budget allows, spread evenly over the points.
func atSomePoints() []trouble {
	return []trouble{
		{Refusals, simulation.RefusedThrice},
		{Refusals, simulation.Throttled},
		{Refusals, simulation.Overloaded},
		{Refusals, simulation.DeniedByWebhook},
		{Refusals, simulation.OverQuota},
		{Refusals, simulation.Conflict},
		{Hangs, simulation.Hung},
		{Hangs, simulation.HungAfter},
		{Children, simulation.ChildEdited},
		{Children, simulation.ChildReplaced},
		{Children, simulation.ChildDeleted},
		{Drift, simulation.IdleChildEdited},
		{Drift, simulation.IdleChildReplaced},
		{Drift, simulation.IdleChildDeleted},
		{Users, simulation.UserEdits},
		{Users, simulation.UserDeletes},
		{Updates, simulation.RollingUpdate},
		{Updates, simulation.RollBack},
		{Restores, simulation.CrashThenReset},
		{Restores, simulation.VersionsReset},
		{OlderRecords, simulation.OlderRecords},
		{OlderRecords, simulation.CrashThenOlder},
		{ForgedRecords, simulation.RecordForged},
		{ForgedRecords, simulation.CrashThenForged},
		{Clocks, simulation.ClockForward},
		{Clocks, simulation.ClockBack},
	}
}

// singles lists the faults that are tried one at a time everywhere, given a run without faults.
func (s settings) singles(clean result) []simulation.Schedule {
	var all []simulation.Schedule
	add := func(fault trouble, at simulation.Point) {
		if s.wants(fault.of) {
			all = append(all, simulation.Schedule{{Kind: fault.kind, At: at}})
		}
	}
	for _, fault := range atPoints() {
		for _, at := range clean.points {
			if fault.happensAt(at) {
				add(fault, at)
			}
		}
	}
	for _, fault := range allTheTime() {
		add(fault, simulation.Point{})
	}
	all = append(all, s.takeovers(clean)...)
	for _, at := range clean.delivered() {
		for _, kind := range []simulation.Kind{simulation.EventDoubled, simulation.EventLost, simulation.EventsSwapped} {
			add(trouble{Events, kind}, at)
		}
	}
	return all
}

// sampled lists the faults of which only some are tried, by kind.
func (s settings) sampled(clean result) [][]simulation.Schedule {
	var all [][]simulation.Schedule
	for _, fault := range atSomePoints() {
		var found []simulation.Schedule
		points := clean.points
		switch {
		case fault.kind.WhileIdle():
			points = clean.idlePoints
		case fault.kind.Replaces() && clean.upgrades:
			points = clean.previousPoints
		}
		for i, at := range points {
			if s.wants(fault.of) && fault.happensAt(at) && fault.hasObject(clean, i) {
				found = append(found, simulation.Schedule{{Kind: fault.kind, At: at}})
			}
		}
		all = append(all, found)
	}
	var skewed []simulation.Schedule
	for _, takeover := range s.takeovers(clean) {
		skewed = append(skewed, append(simulation.Schedule{{Kind: simulation.SkewedClocks}}, takeover...))
	}
	return append(all, skewed)
}

// happensAt reports whether the fault makes a difference at a point.
func (t trouble) happensAt(at simulation.Point) bool {
	verb, rest, _ := strings.Cut(at.What, " ")
	effect, reads := verb == "effect", verb == "get" || verb == "list"
	byHandler := strings.Contains(at.What, " by ")
	switch t.kind {
	case simulation.AnotherWriter:
		return !reads
	case simulation.RecordReplaced, simulation.OlderRecords, simulation.RecordForged:
		return verb == "patch"
	case simulation.Forbidden, simulation.NotServed, simulation.Throttled, simulation.Overloaded:
		return !effect
	case simulation.DeniedByWebhook:
		return !effect && !reads
	case simulation.OverQuota:
		return verb == "create" || verb == "apply"
	case simulation.Conflict:
		return verb == "update" || verb == "patch" || verb == "apply"
	case simulation.ChildEdited:
		return byHandler && !effect && !reads
	case simulation.ChildReplaced:
		return byHandler && !effect && verb != "list" && verb != "delete" // The new one is not what the handler wants to delete.
	case simulation.ChildDeleted:
		return byHandler && !effect && verb != "list" && !strings.HasPrefix(rest, "secrets ")
	case simulation.UserEdits, simulation.UserDeletes:
		return byHandler || effect
	default:
		return true
	}
}

// hasObject reports whether there is an object for a fault that needs one: whether an earlier point wrote it.
func (t trouble) hasObject(clean result, at int) bool {
	switch t.kind {
	case simulation.ChildEdited, simulation.ChildReplaced, simulation.ChildDeleted:
		return slices.ContainsFunc(clean.points[:at], func(earlier simulation.Point) bool {
			read, byHandler := strings.HasPrefix(clean.points[at].What, "get "), strings.Contains(earlier.What, " by ")
			return about(earlier) == about(clean.points[at]) && !strings.HasPrefix(earlier.What, "get ") && (byHandler || !read)
		})
	default:
		return true
	}
}

// about is the resource and the object of a point.
func about(at simulation.Point) string {
	words := strings.Fields(at.What)
	return strings.Join(words[min(1, len(words)):min(3, len(words))], " ") //nolint:mnd // After the verb.
}

// takeovers lists the crashes after which a second replica takes over.
func (s settings) takeovers(clean result) []simulation.Schedule {
	var all []simulation.Schedule
	for _, at := range clean.points {
		if s.wants(Standby) && s.wants(Crashes) && !strings.HasPrefix(at.What, "get ") {
			all = append(all, simulation.Schedule{{Kind: simulation.Standby}, {Kind: simulation.CrashAfter, At: at}})
		}
	}
	return all
}

// withoutStandby leaves out the schedules with a second replica that stands by: they are pairs already, and their leases make
// them slow.
func withoutStandby(schedules []simulation.Schedule) []simulation.Schedule {
	return slices.DeleteFunc(slices.Clone(schedules), func(s simulation.Schedule) bool { return s.Has(simulation.Standby) })
}

// delivered lists the events that watches delivered.
func (r result) delivered() []simulation.Point {
	var all []simulation.Point
	for _, resource := range slices.Sorted(maps.Keys(r.watchEvents)) {
		for n := range r.watchEvents[resource] {
			all = append(all, simulation.Point{What: resource, N: n + 1})
		}
	}
	return all
}

// pairs draws pairs of single things until there are as many schedules as were asked for.
func (s settings) pairs(singles []simulation.Schedule) []simulation.Schedule {
	if s.schedules == 0 || s.budget == quick {
		return nil
	}
	drawn := map[string]bool{}
	var pairs []simulation.Schedule
	chance := s.random()
	played := len(singles)
	singles = withoutStandby(singles)
	all := len(singles) * (len(singles) - 1) / 2
	for played+len(pairs) < s.schedules && len(pairs) < all {
		i, j := chance.IntN(len(singles)), chance.IntN(len(singles))
		if i > j {
			i, j = j, i
		}
		pair := slices.Concat(singles[i], singles[j])
		if name := pair.String(); i != j && !drawn[name] {
			drawn[name] = true
			pairs = append(pairs, pair)
		}
	}
	return pairs
}
