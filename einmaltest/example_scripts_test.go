package einmaltest_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// certificateSubjects are what the scripts in testdata/certificates are about. Each run of a script gets an authority of its own. A script can let it
// refuse requests, and sees how many certificates are valid.
func certificateSubjects() einmaltest.Subjects {
	return einmaltest.Subjects{"certificates": func(*einmaltest.World) einmaltest.Subject {
		outside := newAuthority()
		return einmaltest.Subject{
			Operator: func(p *einmaltest.Process) *einmal.Operator { return certificates(session{outside, p}) },
			Steps: map[string]func(...string) error{"refuse": func(words ...string) error {
				if len(words) != 1 {
					return fmt.Errorf("the step is written as refuse NUMBER, got %q", words)
				}
				var err error
				outside.refusals, err = strconv.Atoi(words[0])
				return err
			}},
			Outcomes: func() map[string]any { return map[string]any{"valid": outside.valid()} },
		}
	}}
}

// rewriting returns the option that all script tests have: with the variable REWRITE_SCRIPTS, they write their results into the scripts. Read the
// difference before you commit it.
func rewriting() einmaltest.ScriptOption {
	return einmaltest.Rewrite(os.Getenv("REWRITE_SCRIPTS") != "")
}

// How does a test show a story step by step, for readers who do not read Go? In scripts: each has the steps of a user, and what the operator did.
func TestScriptsAboutCertificatesHold(t *testing.T) {
	einmaltest.Scripts(t, "testdata/certificates/*.txtar", certificateSubjects(), rewriting())
}

// Does the story of a script end in the same way when the process crashes? The script is a scenario, too.
func TestWhateverGoesWrongScriptsAboutCertificatesEndTheSame(t *testing.T) {
	einmaltest.ExploreScripts(t, "testdata/certificates/issued.txtar", certificateSubjects(), einmaltest.Only(einmaltest.Crashes))
}
