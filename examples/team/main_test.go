package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// lifeOfTeams is what may happen to teams: two are created and wait for their office. One changes its plan, its title and its members, and
// stays. The other one changes its members, and goes.
func lifeOfTeams(w *einmaltest.World) {
	w.Start(newOffice)
	blue, red := newTeam("blue", "Ada", "Bo"), newTeam("red", "Cy")
	red.Labels = map[string]string{"tier": "gold"}
	w.Create(blue, red)
	w.Advance(15 * time.Second)
	w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "office", Labels: map[string]string{"example.com/office": "open"},
	}})
	w.Advance(10 * time.Minute)
	w.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "roster-of-red"}})
	w.Patch(blue, `{"spec":{"plan":"large","title":"the blue ones","members":["Bo","Di","Eve"]}}`)
	w.Patch(red, `{"spec":{"members":["Cy","Flo"]}}`)
	w.Advance(10 * time.Minute)
	w.Restart()
	w.Advance(time.Minute)
	w.Delete(red)
	w.Advance(10 * time.Minute)
}

// newOffice is the operator for one namespace, where it also keeps its books.
func newOffice(*einmaltest.Process) *einmal.Operator {
	return operator(einmal.Namespaces("default"), einmal.StateNamespace("default"))
}

func newTeam(name string, members ...string) *team {
	return &team{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       teamSpec{Title: "the team " + name, Plan: "trial", Members: members},
	}
}

// An operator with every verb and every option does what they say.
func TestEveryVerbDoesItsPart(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		lifeOfTeams(w)
		w.Stop()
		ran := map[string]bool{}
		for _, call := range w.Calls() {
			if call.Outcome == "done" {
				ran[call.Handler] = true
			}
		}
		want := []string{
			"attend", "audit", "await-office", "bill", "check", "clear-seats", "close-account", "count", "greet", "inform", "look-in", "open-account", "remind",
			"retitle", "roster", "seat", "set-seats", "support", "support-all", "thank", "tidy", "visit", "wave",
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(ran))); diff != "" {
			w.Errorf("handlers that ran (-want +got):\n%s", diff)
		}
		for seat, wanted := range map[string]bool{"blue-ada": false, "blue-bo": true} {
			if w.Get(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: seat}}) != wanted {
				w.Errorf("the seat %s is there: %t, want %t", seat, !wanted, wanted)
			}
		}
	})
}

// Principle 9, for an operator with every verb and every option: whatever goes wrong, the end is the same. Wipes are left out:
// what an update handler of a team has not done yet when its record is lost, it does not do any more. An event reports that. Drift is left out:
// the handler seat puts up the sign of a team once, and no handler repairs it, although the handler of the roster owns ConfigMaps.
func TestWhateverGoesWrongTeamsEndTheSame(t *testing.T) {
	einmaltest.Explore(t, lifeOfTeams, einmaltest.NoSpareRights(), einmaltest.Without(einmaltest.Wipes, einmaltest.Drift))
}
