package einmaltest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// Dimension is a kind of thing that goes wrong.
type Dimension string

// What goes wrong, each at every point. Points are the requests and the effects of the operator.
const (
	// Crashes: the process ends before a request or effect, or after it with the answer lost. Another one starts at once,
	// or five minutes later.
	Crashes Dimension = "crashes"
	// Answers: a request is refused (500, 403, or 404 for a reason that is not the object's), or its answer is lost, and the process
	// goes on.
	Answers Dimension = "answers"
	// Outages: nothing reaches the API server for two minutes, and watches break.
	Outages Dimension = "outages"
	// Events: one that a watch tells comes twice, after the next one, or is lost with the watch.
	Events Dimension = "events"
	// StaleCache: all that watches tell comes a second late.
	StaleCache Dimension = "stale cache"
	// OtherWriters: somebody else writes the object just before the operator does.
	OtherWriters Dimension = "other writers"
	// Wipes: annotations, finalizers and records of the operator are taken away, while it runs and while it is down; or the records are
	// replaced by other text while it runs.
	Wipes Dimension = "wipes"
	// Replicas: a second replica of the operator runs beside the first.
	Replicas Dimension = "replicas"
	// Standby: replicas are elected, and a second one stands by. When the first crashes or stops, it takes over.
	Standby Dimension = "standby"
	// Clocks: the API server's clock jumps by five minutes.
	Clocks Dimension = "clocks"
)

// trouble is a kind of fault and the dimension that it belongs to.
type trouble struct {
	of   Dimension
	kind simulation.Kind
}

// allTheTime lists what is wrong all the time.
func allTheTime() []trouble {
	return []trouble{{StaleCache, simulation.StaleCache}, {Replicas, simulation.TwoReplicas}, {Standby, simulation.Standby}}
}

// atPoints lists what goes wrong at points, in the order in which it is tried.
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
		{Clocks, simulation.ClockForward},
		{Clocks, simulation.ClockBack},
	}
}

// settings are what the options of Explore say.
type settings struct {
	schedules int
	seed      uint64
	without   []Dimension

	noSpareRights bool
}

// Option changes what Explore tries.
type Option func(*settings)

// Schedules makes Explore go on with pairs of things that go wrong, chosen by the seed, until it has played so many
// schedules. The default is to try each single one only.
func Schedules(n int) Option { return func(s *settings) { s.schedules = n } }

// Seed chooses other pairs. The default is 1.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// Without leaves out what the operator is not made for: such as Replicas, when it is never run in two.
func Without(dimensions ...Dimension) Option {
	return func(s *settings) { s.without = append(s.without, dimensions...) }
}

// NoSpareRights makes Explore fail when a right that einmal.Access or einmal.Applies asks for was not used in any schedule.
// Whether one is missing is shown anyway: the API server refuses what the roles do not give that the operator's verb rbac
// prints.
func NoSpareRights() Option { return func(s *settings) { s.noSpareRights = true } }

func newSettings(options []Option) settings {
	s := settings{seed: 1}
	for _, option := range options {
		option(&s)
	}
	return s
}

func (s settings) wants(d Dimension) bool { return !slices.Contains(s.without, d) }

// singles lists each single thing that can go wrong, given a run in which nothing did.
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
	for _, at := range clean.told() {
		for _, kind := range []simulation.Kind{simulation.EventDoubled, simulation.EventLost, simulation.EventsSwapped} {
			add(trouble{Events, kind}, at)
		}
	}
	return all
}

// happensAt reports whether the fault means something at a point. What others write matters before a write, and an effect outside of the
// cluster is answered by no API server.
func (t trouble) happensAt(at simulation.Point) bool {
	switch t.kind {
	case simulation.AnotherWriter:
		return !strings.HasPrefix(at.What, "get ")
	case simulation.RecordReplaced:
		return strings.HasPrefix(at.What, "patch ")
	case simulation.Forbidden, simulation.NotServed:
		return !strings.HasPrefix(at.What, "effect ")
	default:
		return true
	}
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

// told lists the events that watches told.
func (r result) told() []simulation.Point {
	var all []simulation.Point
	for _, resource := range slices.Sorted(maps.Keys(r.events)) {
		for n := range r.events[resource] {
			all = append(all, simulation.Point{What: resource, N: n + 1})
		}
	}
	return all
}

// pairs draws pairs of single things until there are as many schedules as were asked for.
func (s settings) pairs(singles []simulation.Schedule) []simulation.Schedule {
	drawn := map[string]bool{}
	var pairs []simulation.Schedule
	chance := rand.New(rand.NewPCG(s.seed, s.seed)) //nolint:gosec // The same pairs each time, not secrets.
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
