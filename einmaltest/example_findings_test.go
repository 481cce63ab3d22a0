package einmaltest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// callsOf returns how the attempts of one handler ended, in order.
func callsOf(handler string, all []einmaltest.Call) []string {
	var found []string
	for _, one := range all {
		if one.Handler == handler {
			found = append(found, one.Outcome)
		}
	}
	return found
}

// How often was a handler tried, and how did each attempt end? Here the authority refuses two requests.
func TestARefusedCertificateIsTriedAgain(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		outside := newAuthority()
		outside.refusals = 2
		w.Start(func(p *einmaltest.Process) *einmal.Operator { return certificates(session{outside, p}) })
		w.Create(newCertificate())
		w.Advance(10 * time.Minute)
		if diff := cmp.Diff([]string{"retry", "retry", "done"}, callsOf("issue", w.Calls())); diff != "" {
			w.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

// carelesslyIssued is issued, with a handler that makes its request without an Effect. So each call has another token.
func carelesslyIssued(w *einmaltest.World) {
	outside := newAuthority()
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := einmal.New("certificates.example.com")
		kind := einmal.For[certificate](op, einmal.GVK("example.com", "v1", "Certificate"))
		kind.OnCreate("issue", func(_ context.Context, c *einmal.Change[certificate]) error {
			made, err := session{outside, p}.issue(c.Object.Spec.Domain, time.Now().String())
			c.Object.Status.Serial, c.Object.Status.Expires = made.Serial, &metav1.Time{Time: made.Expires.Time}
			return err
		})
		return op
	})
	w.Create(newCertificate())
	w.Advance(10 * time.Minute)
	w.Outcome("valid", outside.valid())
}

// requireFound fails the test unless there is a finding with an expectation that is broken, and says which schedule breaks it.
func requireFound(t *testing.T, finding *einmaltest.Finding, broken string) {
	t.Helper()
	if finding == nil || !strings.Contains(strings.Join(finding.Broken, "\n"), broken) {
		t.Fatalf("the finding is %v, want %q", finding, broken)
	}
	t.Logf("found with schedule %d: %s", finding.Schedules, finding.Schedule)
}

// Would the test of the operator find a bug? Search returns what Explore would fail with. A handler that asks with another token each time gets two
// certificates.
func TestACarelessHandlerIsFound(t *testing.T) {
	requireFound(t, einmaltest.Search(t, carelesslyIssued, einmaltest.Only(einmaltest.Crashes)), "valid: the outcome differs")
}

// A finding was repaired. How does a test make sure that it stays so, without the whole exploration? It plays the one schedule of the report.
func TestACrashWhileTheCertificateIsIssuedDoesNoHarm(t *testing.T) {
	t.Setenv(einmaltest.ReplayVariable, "crash after, its answer lost: effect issue one.example.com #1")
	einmaltest.Explore(t, issued)
}
