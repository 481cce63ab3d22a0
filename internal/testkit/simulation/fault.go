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

// What goes wrong at a point: a request or an effect, by its name.
const (
	CrashBefore      Kind = "crash before"
	CrashAfter       Kind = "crash after, its answer lost"
	CrashThenDown    Kind = "crash before, down 5m"
	CrashThenWiped   Kind = "crash before, bookkeeping wiped while down"
	AnswerLost       Kind = "answer lost"
	Refused          Kind = "refused"
	Forbidden        Kind = "forbidden"
	NotServed        Kind = "answered that the kind is not served"
	Unreachable      Kind = "API server unreachable for 2m before"
	AnotherWriter    Kind = "another writer before"
	BookkeepingWiped Kind = "bookkeeping wiped before"
	RecordReplaced   Kind = "record replaced by other text before"
	ClockForward     Kind = "API server's clock 5m forward before"
	ClockBack        Kind = "API server's clock 5m back before"
)

// What goes wrong with the nth event that a watch tells of a resource.
const (
	EventDoubled  Kind = "event doubled"
	EventLost     Kind = "event lost, watch expired"
	EventsSwapped Kind = "event told after the next one"
)

// What is wrong all the time.
const (
	StaleCache  Kind = "cache stale by 1s"
	TwoReplicas Kind = "two replicas"
	Standby     Kind = "a second replica stands by"
)

// How long what goes wrong lasts.
const (
	downFor        = 5 * time.Minute
	unreachableFor = 2 * time.Minute
	staleBy        = time.Second
	clockJump      = 5 * time.Minute
	swapPatience   = 5 * time.Second
)

// kinds lists every kind, and whether it has a point.
func kinds() map[Kind]bool {
	return map[Kind]bool{
		CrashBefore: true, CrashAfter: true, CrashThenDown: true, CrashThenWiped: true, AnswerLost: true, Refused: true,
		Forbidden: true, NotServed: true, RecordReplaced: true,
		Unreachable: true, AnotherWriter: true, BookkeepingWiped: true, ClockForward: true, ClockBack: true,
		EventDoubled: true, EventLost: true, EventsSwapped: true,
		StaleCache: false, TwoReplicas: false, Standby: false,
	}
}

// Crash tells whether the process ends.
func (k Kind) Crash() bool {
	return k == CrashBefore || k == CrashAfter || k == CrashThenDown || k == CrashThenWiped
}

// Wipe tells whether bookkeeping is lost.
func (k Kind) Wipe() bool { return k == CrashThenWiped || k == BookkeepingWiped || k == RecordReplaced }

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

// Has tells whether a fault of this kind is in the schedule.
func (s Schedule) Has(kind Kind) bool {
	return slices.ContainsFunc(s, func(f Fault) bool { return f.Kind == kind })
}

// Count tells how many faults are of such a kind.
func (s Schedule) Count(such func(Kind) bool) int {
	n := 0
	for _, fault := range s {
		if such(fault.Kind) {
			n++
		}
	}
	return n
}

// Disturbs tells whether an attempt of a handler can fail because of the schedule, other than by the end of the process.
func (s Schedule) Disturbs() bool {
	return s.Has(AnswerLost) || s.Has(Refused) || s.Has(Forbidden) || s.Has(NotServed) || s.Has(Unreachable) || s.Has(AnotherWriter) || s.Has(TwoReplicas)
}

// ParseSchedule reads what String wrote.
func ParseSchedule(text string) (Schedule, error) {
	var schedule Schedule
	for name := range strings.SplitSeq(text, separator) {
		kind, point, pointed := strings.Cut(strings.TrimSpace(name), ": ")
		hasPoint, known := kinds()[Kind(kind)]
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
	errUnknownFault = errors.New("no such fault is known: copy the schedule from the report of a failure")
	errPoint        = errors.New("a fault at a point is written as KIND: POINT, one that is there all the time without a point")
)
