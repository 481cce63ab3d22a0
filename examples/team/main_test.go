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

// lifeOfTeams is what may happen to teams: one is created and waits for its office, changes its plan, its title and its
// members, and goes; another one stays.
func lifeOfTeams(w *einmaltest.World) {
	w.Start(newOffice)
	blue, red := newTeam("blue", "trial", "Ada", "Bo"), newTeam("red", "small", "Cy")
	red.Labels, red.Annotations = map[string]string{"tier": "gold"}, map[string]string{"example.com/badge": "a star"}
	w.Create(blue, red)
	w.Advance(15 * time.Second)
	w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "office", Labels: map[string]string{"example.com/office": "open"},
	}})
	w.Advance(10 * time.Minute)
	w.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "roster-of-red"}})
	w.Patch(blue, `{"spec":{"plan":"large","title":"the blue ones","members":["Bo","Di","Eve"]}}`)
	w.Advance(10 * time.Minute)
	w.Patch(red, `{"spec":{"members":["Cy","Flo","Gus"]}}`)
	w.Advance(10 * time.Minute)
	w.Outcome("blue", statusOf(w, blue))
	w.Restart()
	w.Advance(time.Minute)
	w.Delete(blue)
	w.Advance(10 * time.Minute)
	w.Outcome("blue is there", w.Get(blue))
	w.Outcome("red", statusOf(w, red))
}

// newOffice is the operator for one namespace, where it also keeps its books.
func newOffice(*einmaltest.Process) *einmal.Operator {
	return operator(einmal.Namespaces("default"), einmal.StateNamespace("default"))
}

func newTeam(name, plan string, members ...string) *team {
	return &team{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       teamSpec{Title: "the team " + name, Plan: plan, Members: members},
	}
}

// statusOf is the status of a team without what times and records there are in it.
func statusOf(w *einmaltest.World, of *team) teamStatus {
	found := newTeam(of.Name, "")
	w.Get(found)
	found.Status.Records = einmal.Records{}
	for i := range found.Status.Conditions {
		found.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return found.Status
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
			"attend", "audit", "await-office", "badge", "bill", "check", "close-account", "count", "greet", "look-in", "open-account", "phone", "remind", "reseat",
			"retitle", "roster", "seat", "set-seats", "sum-up", "support", "support-all", "thank", "tidy", "visit", "wave",
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(ran))); diff != "" {
			w.Errorf("handlers that ran (-want +got):\n%s", diff)
		}
	})
}

// Principle 9, for an operator with every verb and every option: whatever goes wrong, the end is the same. Wipes are left out:
// what an update handler of a team has not done yet when its record is lost, it does not do any more. An event reports that.
func TestWhateverGoesWrongTeamsEndTheSame(t *testing.T) {
	einmaltest.Explore(t, lifeOfTeams, einmaltest.NoSpareRights(), einmaltest.Without(einmaltest.Wipes))
}
