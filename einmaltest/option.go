package einmaltest

import (
	"fmt"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// settings are what the options of Explore and the environment variables say.
type settings struct {
	budget    budget
	share     share
	schedules int
	seed      uint64
	without   []Dimension
	only      []Dimension // nil for all
	times     []simulation.TimeField
	mistakes  []string

	noSpareRights bool
}

// Option changes what Explore tries or compares.
type Option func(*settings)

// Schedules makes Explore go on with pairs of faults, chosen by the seed, until it has played n schedules. The default is 0: no pairs
// beside those of Recovery and Standby.
func Schedules(n int) Option { return func(s *settings) { s.schedules = n } }

// Seed chooses another sample and other pairs. The default is 1. The environment variable EINMALTEST_SEED takes precedence.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// Without leaves dimensions out that the operator is not made for, such as Replicas when it never runs twice. The report names them.
func Without(dimensions ...Dimension) Option {
	return func(s *settings) { s.without = append(s.without, dimensions...) }
}

// Only leaves all other dimensions out: while you look for the reason of a finding, one dimension answers in seconds what all of them answer in
// minutes. Without any dimension, Explore plays only the runs without faults. The report names the dimensions. Several options Only add up.
func Only(dimensions ...Dimension) Option {
	return func(s *settings) { s.only = append(append([]Dimension{}, s.only...), dimensions...) }
}

// NoSpareRights makes Explore fail when a right that einmal.Permissions or einmal.Applies asks for was not used in any schedule. A missing right
// fails a run with and without this option: the API server refuses what the roles do not give that the operator's command rbac prints.
func NoSpareRights() Option { return func(s *settings) { s.noSpareRights = true } }

// TimeRule says how a time is compared with the run without faults.
type TimeRule struct {
	once   bool
	within time.Duration
}

// SetOnce is the rule for a time that is decided once, such as the expiry of a certificate: the operator may change it no more often than in
// the run without faults.
func SetOnce() TimeRule { return TimeRule{once: true} }

// Within is the rule for a time that may come later after a fault: in the end it may differ from that of the run without faults by at most d.
// Remember that an operator can be down for five minutes.
func Within(d time.Duration) TimeRule { return TimeRule{within: d} }

// CompareTime makes Explore compare a field that holds a time in the form of RFC 3339, such as "status.expires" of the kind "Certificate".
// Other times are not compared, since most of them say when something happened. A field that is no path fails the test.
func CompareTime(kind, field string, rule TimeRule) Option {
	return func(s *settings) {
		path, err := object.ParsePath(field)
		if err != nil {
			s.mistakes = append(s.mistakes, fmt.Sprintf("option CompareTime: %v", err))
		}
		s.times = append(s.times, simulation.TimeField{Kind: kind, Path: path, Once: rule.once, Within: rule.within})
	}
}

func newSettings(options []Option) settings {
	s := settings{seed: 1}
	for _, option := range options {
		option(&s)
	}
	return fromEnvironment(s)
}

func (s settings) wants(d Dimension) bool {
	return !slices.Contains(s.without, d) && (s.only == nil || slices.Contains(s.only, d))
}
