package einmaltest

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
)

// The report says what was tried and what was not, so that a green test is not taken for more than it is.
func TestTheReportSaysWhatIsNotKnown(t *testing.T) {
	scenario := func(w *World) {
		w.Start(func(*Process) *einmal.Operator {
			op := einmal.New("report.example.com")
			configs := einmal.For[corev1.ConfigMap](op)
			note := func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil }
			configs.OnCreate("make", note)
			configs.OnDelete("unmake", note)
			return op
		})
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
		w.Advance(10 * time.Minute)
	}
	found, summary, leftOut := search(t, scenario, []Option{Without(Recovery, Standby, Updates, Events)})
	if found != nil {
		t.Fatal(found)
	}
	for _, want := range []string{
		"schedules played",
		"left out by Without: [recovery standby updates events]",
		"handlers that were never called, so that nothing is known about them: unmake",
		"no effects were seen: work outside of the cluster that does not call Process.Effect is neither disturbed nor counted",
	} {
		if !strings.Contains(summary, want) {
			t.Errorf("the summary does not say %q: %s", want, summary)
		}
	}
	if all := strings.Join(leftOut, "\n"); !strings.Contains(all, "Events") || !strings.Contains(all, "creationTimestamp") {
		t.Errorf("the list of what is not compared lacks something:\n%s", all)
	}
}

// A finding says how much was not tried, and where to read on.
func TestAFindingSaysWhatWasNotTried(t *testing.T) {
	found := Finding{Schedule: "crash before, bookkeeping wiped while down: get services default/one by make #1", Broken: []string{"one"}, unplayed: 7}
	for _, want := range []string{"- one\n", "7 further schedules were not played for lack of time", "docs/concepts/changed-identity.md"} {
		if !strings.Contains(found.String(), want) {
			t.Errorf("the finding does not say %q: %s", want, &found)
		}
	}
}
