package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is what goes wrong.
type Kind string

// Faults at a point: a request or an effect, by its name.
const (
	CrashBefore      Kind = "crash before"
	CrashAfter       Kind = "crash after, its answer lost"
	CrashThenDown    Kind = "crash before, down 5m"
	CrashThenWiped   Kind = "crash before, bookkeeping wiped while down"
	CrashThenReset   Kind = "crash before, resource versions reset while down"
	CrashThenOlder   Kind = "crash before, older records put back while down"
	CrashThenForged  Kind = "crash before, records forged in annotations while down"
	AnswerLost       Kind = "answer lost"
	Refused          Kind = "refused"
	RefusedThrice    Kind = "refused 3 times in a row"
	Forbidden        Kind = "forbidden"
	NotServed        Kind = "answered that the kind is not served"
	Throttled        Kind = "throttled, retry after 2s"
	Overloaded       Kind = "API server overloaded for 20s from"
	DeniedByWebhook  Kind = "denied by a webhook"
	OverQuota        Kind = "over quota"
	Conflict         Kind = "conflict"
	Hung             Kind = "no answer, not carried out"
	HungAfter        Kind = "no answer, carried out"
	Unreachable      Kind = "API server unreachable for 2m before"
	AnotherWriter    Kind = "another writer before"
	ChildEdited      Kind = "child edited by another writer before"
	ChildReplaced    Kind = "child replaced by another writer before"
	ChildDeleted     Kind = "child deleted by another writer before"
	UserEdits        Kind = "user edits the object during"
	UserDeletes      Kind = "user deletes the object during"
	RollingUpdate    Kind = "rolling update before"
	RollBack         Kind = "update before, rolled back 1m later"
	BookkeepingWiped Kind = "bookkeeping wiped before"
	RecordReplaced   Kind = "record replaced by other text before"
	OlderRecords     Kind = "older records put back before"
	RecordForged     Kind = "record forged in an annotation before"
	VersionsReset    Kind = "resource versions reset before"
	ClockForward     Kind = "API server's clock 5m forward before"
	ClockBack        Kind = "API server's clock 5m back before"
)

// Faults at an idle point: a child that exists while nothing happens, by its name.
const (
	IdleChildEdited   Kind = "child's data edited by another writer while nothing happens"
	IdleChildReplaced Kind = "child replaced by another writer while nothing happens"
	IdleChildDeleted  Kind = "child deleted by another writer while nothing happens"
)

// Faults of the nth watch event of a resource.
const (
	EventDoubled  Kind = "event doubled"
	EventLost     Kind = "event lost, watch expired"
	EventsSwapped Kind = "event told after the next one"
)

// Faults that last for the whole run.
const (
	StaleCache   Kind = "cache stale by 1s"
	OldCache     Kind = "cache stale by 30s"
	SlowCalls    Kind = "requests and effects of handlers take 1s"
	TwoReplicas  Kind = "two replicas"
	Standby      Kind = "a second replica stands by"
	SkewedClocks Kind = "the clocks of replicas differ by 3m"
	TwoOperators Kind = "another operator handles the same objects"
)

// How long faults last.
const (
	downFor        = 5 * time.Minute
	unreachableFor = 2 * time.Minute
	overloadedFor  = 20 * time.Second
	throttledFor   = 2 * time.Second
	staleBy        = time.Second
	oldBy          = 30 * time.Second
	slowBy         = time.Second
	rolloutTakes   = time.Minute
	clockSkew      = 3 * time.Minute
	clockJump      = 5 * time.Minute
	swapPatience   = 5 * time.Second
)

// Kinds lists every kind, and whether it has a point.
func Kinds() map[Kind]bool {
	return map[Kind]bool{
		CrashBefore: true, CrashAfter: true, CrashThenDown: true, CrashThenWiped: true, AnswerLost: true, Refused: true,
		RefusedThrice: true, Forbidden: true, NotServed: true, RecordReplaced: true, Throttled: true, Overloaded: true,
		DeniedByWebhook: true, OverQuota: true, Conflict: true, Hung: true, HungAfter: true,
		Unreachable: true, AnotherWriter: true, BookkeepingWiped: true, ClockForward: true, ClockBack: true,
		ChildEdited: true, ChildReplaced: true, ChildDeleted: true, UserEdits: true, UserDeletes: true,
		RollingUpdate: true, RollBack: true, CrashThenReset: true, CrashThenOlder: true, OlderRecords: true,
		CrashThenForged: true, RecordForged: true, VersionsReset: true,
		IdleChildEdited: true, IdleChildReplaced: true, IdleChildDeleted: true,
		EventDoubled: true, EventLost: true, EventsSwapped: true,
		StaleCache: false, OldCache: false, SlowCalls: false, TwoReplicas: false, Standby: false,
		SkewedClocks: false, TwoOperators: false,
	}
}

// Crash reports whether the process ends.
func (k Kind) Crash() bool {
	return k == CrashBefore || k == CrashAfter || k == CrashThenDown || k == CrashThenWiped || k == CrashThenReset || k == CrashThenOlder || k == CrashThenForged
}

// Wipe reports whether bookkeeping is lost or overwritten.
func (k Kind) Wipe() bool {
	return k == CrashThenWiped || k == BookkeepingWiped || k == RecordReplaced || k == OlderRecords || k == CrashThenOlder
}

// Repeats reports whether a handler that has succeeded may run once more: its process ends before the success is saved, or what it
// changes in its object is denied, so that the attempt has failed.
func (k Kind) Repeats() bool { return k.Crash() || k.Replaces() || k == DeniedByWebhook }

// Hangs reports whether a point gets no answer until its deadline.
func (k Kind) Hangs() bool { return k == Hung || k == HungAfter }

// Replaces reports whether another process of the operator takes over while the first one runs or after it was stopped in order.
func (k Kind) Replaces() bool { return k == RollingUpdate || k == RollBack }

// WhileIdle reports whether a child is changed while nothing happens.
func (k Kind) WhileIdle() bool {
	return k == IdleChildEdited || k == IdleChildReplaced || k == IdleChildDeleted
}

// ByUser reports whether a user acts.
func (k Kind) ByUser() bool { return k == UserEdits || k == UserDeletes }

// Fault is one thing that goes wrong, once: what, and where.
type Fault struct {
	Kind Kind
	// At is the point; the zero value for what is wrong all the time.
	At Point
}

// String names the fault, as ParseSchedule reads it.
func (f Fault) String() string {
	if f.At == (Point{}) {
		return string(f.Kind)
	}
	return string(f.Kind) + ": " + f.At.String()
}

// Schedule is all that goes wrong in one run.
type Schedule []Fault

// separator stands between the faults of a schedule.
const separator = "; "

// String names the schedule, as ParseSchedule reads it.
func (s Schedule) String() string {
	if len(s) == 0 {
		return "nothing goes wrong"
	}
	names := make([]string, len(s))
	for i, fault := range s {
		names[i] = fault.String()
	}
	return strings.Join(names, separator)
}

// Has reports whether a fault of this kind is in the schedule.
func (s Schedule) Has(kind Kind) bool {
	return slices.ContainsFunc(s, func(f Fault) bool { return f.Kind == kind })
}

// Count returns how many faults are of such a kind.
func (s Schedule) Count(such func(Kind) bool) int {
	n := 0
	for _, fault := range s {
		if such(fault.Kind) {
			n++
		}
	}
	return n
}

// GoesBack reports whether a process can begin with a record that is older than the one that the process before it wrote.
func (s Schedule) GoesBack() bool {
	ends := s.Count(func(k Kind) bool { return k.Crash() || k.Replaces() })
	return s.Has(CrashThenOlder) || s.Has(OlderRecords) && ends > 0
}

// Disturbs reports whether an attempt of a handler can fail because of the schedule, other than by the end of the process.
func (s Schedule) Disturbs() bool {
	return s.Count(func(k Kind) bool {
		switch k {
		case CrashBefore, CrashAfter, CrashThenDown, CrashThenWiped, CrashThenReset, CrashThenOlder, BookkeepingWiped, RecordReplaced, OlderRecords, RecordForged,
			CrashThenForged, ClockForward, ClockBack, EventDoubled, EventLost, EventsSwapped, StaleCache, Standby:
			return false
		default:
			return true
		}
	}) > 0
}

// staleBy returns how late watches deliver.
func (s Schedule) staleBy() time.Duration {
	switch {
	case s.Has(OldCache):
		return oldBy
	case s.Has(StaleCache):
		return staleBy
	default:
		return 0
	}
}

// elects reports whether the processes elect a leader.
func (s Schedule) elects() bool { return s.Has(Standby) || s.Has(RollingUpdate) || s.Has(RollBack) }

// ParseSchedule reads what String wrote.
func ParseSchedule(text string) (Schedule, error) {
	var schedule Schedule
	for name := range strings.SplitSeq(text, separator) {
		kind, point, pointed := strings.Cut(strings.TrimSpace(name), ": ")
		hasPoint, known := Kinds()[Kind(kind)]
		switch {
		case !known:
			return nil, fmt.Errorf("%q: %w", name, errUnknownFault)
		case hasPoint != pointed:
			return nil, fmt.Errorf("%q: %w", name, errPoint)
		}
		fault := Fault{Kind: Kind(kind)}
		if pointed {
			var err error
			if fault.At, err = parsePoint(point); err != nil {
				return nil, err
			}
		}
		schedule = append(schedule, fault)
	}
	return schedule, nil
}

var (
	errUnknownFault = errors.New("unknown fault: copy the schedule from the report of a failure")
	errPoint        = errors.New("a fault at a point is written as KIND: POINT, one that lasts for the whole run without a point")
)
