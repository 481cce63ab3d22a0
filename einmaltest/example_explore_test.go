package einmaltest_test

import (
	"os"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/einmaltest"
)

// Does the authority issue one certificate, wherever the process crashes, and where it crashes again while it recovers?
func TestWhateverGoesWrongACertificateIsIssuedOnce(t *testing.T) {
	einmaltest.Explore(t, issued, einmaltest.Only(einmaltest.Crashes, einmaltest.Recovery))
}

// byDayOrNight returns options for one test that is short while you work, and thorough at night: then it plays each fault at each point, and after
// that pairs of faults, other pairs each night. The seed need not be kept, because the report of a finding has the schedule itself.
func byDayOrNight(t *testing.T) []einmaltest.Option {
	t.Helper()
	if os.Getenv("NIGHTLY") == "" {
		return []einmaltest.Option{einmaltest.Without(
			einmaltest.Refusals, einmaltest.Hangs, einmaltest.Outages, einmaltest.Restores, einmaltest.Clocks, einmaltest.Recovery,
			einmaltest.SlowCalls,
		)}
	}
	t.Setenv(einmaltest.AllVariable, "1")
	return []einmaltest.Option{einmaltest.Schedules(5000), einmaltest.Seed(uint64(time.Now().YearDay()))}
}

// An operator never runs twice, and no other program writes its objects. Which dimensions does its test leave out? The report names them, so that a
// reader sees what the test does not show.
func TestWhateverGoesWrongAnOperatorAloneIssuesOnce(t *testing.T) {
	oneProcess := einmaltest.Without(einmaltest.Replicas, einmaltest.Standby, einmaltest.Updates)
	ownCluster := einmaltest.Without(einmaltest.Users, einmaltest.OtherWriters, einmaltest.Operators, einmaltest.Children, einmaltest.Wipes,
		einmaltest.OlderRecords, einmaltest.ForgedRecords)
	einmaltest.Explore(t, issued, append(byDayOrNight(t), oneProcess, ownCluster)...)
}

// Most times in a status say when something happened, so they may differ after a fault. How does a test check those that matter? It gives a rule for
// each: the expiry is decided once, and the last check comes at most one interval of the timer later.
func TestWhateverGoesWrongTheExpiryIsDecidedOnce(t *testing.T) {
	rules := map[string]einmaltest.TimeRule{
		"status.expires": einmaltest.SetOnce(),
		"status.checked": einmaltest.Within(time.Hour),
	}
	options := []einmaltest.Option{einmaltest.Only(einmaltest.Crashes)}
	for field, rule := range rules {
		options = append(options, einmaltest.CompareTime("Certificate", field, rule))
	}
	einmaltest.Explore(t, issued, options...)
}
