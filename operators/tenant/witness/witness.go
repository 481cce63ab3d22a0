// Package witness watches for outages as a workload would notice them: it holds the credentials that it was given first, and logs in
// with them again and again, each time over a new connection.
package witness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Interval is how often a target is tried, unless an attempt takes longer. From the third target on, each one makes it longer by 25 ms:
// more than 40 logins a second would slow down the servers that are watched.
const Interval = 50 * time.Millisecond

// intervalOf is how often each of so many targets is tried.
func intervalOf(targets int) time.Duration { return max(Interval, time.Duration(targets)*Interval/2) }

// patience is how long an attempt may take before it has failed.
const patience = 5 * time.Second

// Reason is why an attempt failed. It holds nothing that is secret.
type Reason string

// The reasons.
const (
	// WrongPassword: the system says that the user or the password is wrong: SQLSTATE 28P01, WRONGPASS.
	WrongPassword Reason = "wrong password"
	// Denied: the user may not log in, or may not do what it could: SQLSTATE 28000, 42501 and 3D000, NOPERM.
	Denied Reason = "denied"
	// Unavailable: the system answers, and can do nothing now: it starts, stops, loads or is full.
	Unavailable Reason = "unavailable"
	// Unreachable: the system does not answer, or not within 5 seconds.
	Unreachable Reason = "unreachable"
	// Other: any other answer.
	Other Reason = "other"
)

// Target is what a witness logs in to: a Postgres or a Redis.
type Target interface {
	// String names it, without a secret.
	String() string
	// attempt logs in, does something, and closes the connection.
	attempt(ctx context.Context) error
	// reason classifies an error of attempt.
	reason(err error) Reason
}

// Tally is what a witness saw of one target.
type Tally struct {
	Target string
	// Logins is how many attempts succeeded, Failed how many did not, and why.
	Logins int
	Failed map[Reason]int
	// First is when the first that failed began; zero if none did.
	First time.Time
}

// Report is what a witness saw, of each target.
type Report []Tally

// Logins is how many attempts succeeded at the target where they were fewest: no failures of no logins show nothing.
func (r Report) Logins() int {
	if len(r) == 0 {
		return 0
	}
	return slices.MinFunc(r, func(one, other Tally) int { return one.Logins - other.Logins }).Logins
}

// Failures is how many attempts failed in all, for some of the reasons, or for any if none is given.
func (r Report) Failures(reasons ...Reason) int {
	sum := 0
	for _, tally := range r {
		for reason, count := range tally.Failed {
			if len(reasons) == 0 || slices.Contains(reasons, reason) {
				sum += count
			}
		}
	}
	return sum
}

// String tells all, in a line for each target.
func (r Report) String() string {
	var lines []string
	for _, tally := range r {
		line := fmt.Sprintf("%s: %d logins, failures: %d", tally.Target, tally.Logins, Report{tally}.Failures())
		if !tally.First.IsZero() {
			line += fmt.Sprintf(" %v, the first at %s", tally.Failed, tally.First.Format(time.RFC3339Nano))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Witness logs in until it is stopped.
type Witness struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	tallies Report
}

// Start begins to log in to targets, to each by itself, until Stop or the end of the context.
func Start(ctx context.Context, targets ...Target) *Witness {
	ctx, cancel := context.WithCancel(ctx)
	started := &Witness{cancel: cancel}
	for _, target := range targets {
		started.tallies = append(started.tallies, Tally{Target: target.String(), Failed: map[Reason]int{}})
	}
	for i, target := range targets {
		started.running.Go(func() { started.watch(ctx, i, target, intervalOf(len(targets))) })
	}
	return started
}

// Stop ends the attempts and tells what came of them. One that was under way is not counted.
func (w *Witness) Stop() Report {
	w.cancel()
	w.running.Wait()
	return w.Report()
}

// Report tells what came of the attempts so far.
func (w *Witness) Report() Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	report := slices.Clone(w.tallies)
	for i, tally := range report {
		report[i].Failed = maps.Clone(tally.Failed)
	}
	return report
}

func (w *Witness) watch(ctx context.Context, i int, target Target, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		began := time.Now()
		trying, cancel := context.WithTimeout(ctx, patience)
		err := target.attempt(trying)
		cancel()
		if ctx.Err() != nil {
			return
		}
		w.count(i, target, began, err)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// count takes down an attempt.
func (w *Witness) count(i int, target Target, began time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tally := &w.tallies[i]
	if err == nil {
		tally.Logins++
		return
	}
	tally.Failed[target.reason(err)]++
	if tally.First.IsZero() {
		tally.First = began
	}
}
