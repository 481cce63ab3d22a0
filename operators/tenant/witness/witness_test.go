package witness_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/witness"
)

// While nothing changes, a witness sees no failure, and its logins are real.
func TestAWitnessOfNothingSeesNoFailure(t *testing.T) {
	t.Parallel()
	tenant := newTenancy(t, "calm")
	watching := witness.Start(t.Context(), tenant.targets()...)
	logins(t, watching)
	logins(t, watching)
	if report := watching.Stop(); report.Failures() > 0 || report.Logins() < 10 {
		t.Errorf("it saw:\n%s", report)
	}
	if value := tenant.operator.redis.Get(t.Context(), "calm:witness").Val(); value != "witness" {
		t.Errorf("its key has the value %q", value)
	}
}

// A witness tells what failed first and why, and nothing that is secret.
func TestAWitnessTellsWhyALoginFailed(t *testing.T) {
	t.Parallel()
	for reason, test := range map[witness.Reason]struct {
		role, user string // what happens to the role and to the user
	}{
		witness.WrongPassword: {"PASSWORD 'changed'", "resetpass >changed"},
		witness.Denied:        {"NOLOGIN", "-set"},
		witness.Unavailable:   {"CONNECTION LIMIT 0", ""},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			tenant := newTenancy(t, "t_"+strings.Fields(string(reason))[0])
			targets := tenant.targets()
			if test.user == "" {
				targets = targets[:1]
			}
			watching := witness.Start(t.Context(), targets...)
			logins(t, watching)
			_, err := tenant.operator.postgres.Exec(t.Context(), fmt.Sprintf("ALTER ROLE %s %s", tenant.name, test.role))
			must(t, err)
			must(t, tenant.operator.redis.ACLSetUser(t.Context(), tenant.name, strings.Fields(test.user)...).Err())
			until(t, watching, "failures", func(now witness.Report) bool {
				return !slices.ContainsFunc(now, func(tally witness.Tally) bool { return tally.First.IsZero() })
			})
			report := watching.Stop()
			if report.Failures(reason) != report.Failures() || report[0].Failed[reason] == 0 || !strings.Contains(report.String(), string(reason)) {
				t.Errorf("it saw:\n%s", report)
			}
			shown := fmt.Sprintf("%s %+v %v", report, report, targets)
			for _, password := range []credential.Password{tenant.password(databaseOf), tenant.password(cacheOf)} {
				if strings.Contains(shown, password.Reveal()) {
					t.Errorf("it shows a password: %s", shown)
				}
			}
		})
	}
}

// The witness distinguishes an outage from a rejected password.
func TestAWitnessOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	tenant := newTenancy(t, "outage")
	watching := witness.Start(t.Context(), tenant.targets()[1])
	logins(t, watching)
	must(t, tenant.operator.redis.Do(t.Context(), "ACL", "SAVE").Err())
	must(t, tenant.redis.Stop())
	until(t, watching, "failures", func(now witness.Report) bool { return now.Failures(witness.Unreachable) > 2 })
	must(t, tenant.redis.Start(t.Context()))
	logins(t, watching)
	if report := watching.Stop(); report.Failures() != report.Failures(witness.Unreachable, witness.Unavailable) {
		t.Errorf("it saw:\n%s", report)
	}
}

// The issue, negative control: the handler of the first article breaks every workload when its object is applied again.
func TestTheFirstArticleFailsTheWitness(t *testing.T) {
	t.Parallel()
	tenant := newTenancy(t, "first")
	watching := witness.Start(t.Context(), tenant.targets()...)
	logins(t, watching)
	must(t, tenant.operator.onCreate(t.Context(), tenant.name))
	lockedOut(t, watching)
}

// The issue, negative control: so does that of the second article in each state in which not all of the three layers are as they should be.
func TestTheSecondArticleFailsTheWitnessWhereSomethingIsMissing(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *tenancy){
		"stored_db":    func(_ *testing.T, y *tenancy) { delete(y.operator.parameters, databaseOf(y.name)) },
		"stored_cache": func(_ *testing.T, y *tenancy) { delete(y.operator.parameters, cacheOf(y.name)) },
		"cache": func(t *testing.T, y *tenancy) {
			t.Helper()
			must(t, y.operator.redis.ACLDelUser(t.Context(), y.name).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenant := newTenancy(t, "second_"+name)
			watching := witness.Start(t.Context(), tenant.targets()...)
			logins(t, watching)
			must(t, tenant.operator.onCreateChecked(t.Context(), tenant.name))
			logins(t, watching)
			if report := watching.Report(); report.Failures() > 0 {
				t.Errorf("where nothing is missing it saw:\n%s", report)
			}
			lose(t, tenant)
			must(t, tenant.operator.onCreateChecked(t.Context(), tenant.name))
			lockedOut(t, watching)
		})
	}
}

// lockedOut shows that a witness is not let in any more, to either system.
func lockedOut(t *testing.T, watching *witness.Witness) {
	t.Helper()
	until(t, watching, "wrong passwords everywhere", func(now witness.Report) bool {
		return now[0].Failed[witness.WrongPassword] > 2 && now[1].Failed[witness.WrongPassword] > 2
	})
	report := watching.Stop()
	// Redis cuts the connections of a user that is deleted: an attempt may be under way just then.
	if report.Failures() != report.Failures(witness.WrongPassword, witness.Unreachable) || report.Logins() < 5 {
		t.Errorf("it saw:\n%s", report)
	}
	t.Logf("as it should, it saw:\n%s", report)
}
