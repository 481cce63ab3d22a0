package objects_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/objects"
)

func key() types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: "one"} }

// trigger is a change of a related object.
func trigger(name string, event cause.Cause) objects.Trigger {
	return objects.Trigger{Kind: "Pod", NamespacedName: types.NamespacedName{Name: name}, Event: event}
}

func modified(version string) objects.Event {
	return objects.Event{Kind: objects.Modified, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

// What is known of an object and what has arrived for it go away apart from each other, and leave nothing behind.
func TestAnEntryGoesWithTheLastThingInIt(t *testing.T) {
	var all objects.Objects[string]
	if all.Known(key()) != nil || all.Triggered(key()) != nil || all.TakeEvents(key()) != nil || all.TakeTriggers(key(), "h") != nil {
		t.Error("there is something of an object of which nothing is known")
	}
	known := "known"
	all.Know(key(), &known)
	all.PutTrigger(key(), "h", trigger("a", objects.Added))
	all.PutEvent(key(), modified("1"))
	all.Forget(key())
	if all.Known(key()) != nil || len(all.All()) != 0 {
		t.Error("what is forgotten is known")
	}
	if got := all.Keys(); !slices.Equal(got, []types.NamespacedName{key()}) {
		t.Errorf("the entries are %v", got)
	}
	if got := all.TakeTriggers(key(), "h"); len(got) != 1 || objects.Names(got) != "Pod a added" {
		t.Errorf("the triggers are %v", got)
	}
	if got := all.TakeEvents(key()); len(got) != 1 {
		t.Errorf("the events are %v", got)
	}
	all.PutTrigger(key(), "h", trigger("a", objects.Added))
	all.DropTriggers(key())
	if got := all.Keys(); len(got) != 0 {
		t.Errorf("the entries are %v", got)
	}
	all.Know(key(), &known)
	if got := all.All(); *got[key()] != known || all.Known(key()) != &known {
		t.Errorf("known is %v", got)
	}
}

// Triggers are few: one for each related object, and not more than ten. The deletion of a related object is always among them.
func TestTriggersOfAHandlerAreFew(t *testing.T) {
	var all objects.Objects[string]
	for i := range 20 {
		all.PutTrigger(key(), "h", trigger(fmt.Sprint(i%15), objects.Modified))
	}
	if all.TriggeredByDeletion(key(), "h") {
		t.Error("a deletion has triggered the handler")
	}
	all.PutTrigger(key(), "h", trigger("14", objects.Deleted))
	all.PutTrigger(key(), "h", trigger("3", objects.Deleted))
	all.PutTrigger(key(), "other", trigger("3", objects.Modified))
	if !all.TriggeredByDeletion(key(), "h") || all.TriggeredByDeletion(key(), "other") {
		t.Error("the deletion has not triggered the handler, or another one")
	}
	if diff := cmp.Diff(map[string]bool{"h": true, "other": true}, all.Triggered(key())); diff != "" {
		t.Errorf("triggered handlers (-want +got):\n%s", diff)
	}
	const want = "Pod 0 modified, Pod 1 modified, Pod 2 modified, Pod 3 deleted, Pod 4 modified, Pod 5 modified, Pod 6 modified, Pod 7 modified, Pod 8 modified, Pod 14 deleted"
	if got := objects.Names(all.TakeTriggers(key(), "h")); got != want {
		t.Errorf("the triggers are\n%s\nwant\n%s", got, want)
	}
	if got := all.Triggered(key()); !got["other"] || len(got) != 1 {
		t.Errorf("after they were taken: %v", got)
	}
}

// Of changes in a row only the newest event stays. Events that were not delivered come first again.
func TestEventsStayInTheirOrder(t *testing.T) {
	var all objects.Objects[string]
	versions := func(of []objects.Event) (found []string) {
		for _, one := range of {
			found = append(found, string(one.Kind)+" "+one.Object.GetResourceVersion())
		}
		return found
	}
	added, deleted := modified("1"), modified("4")
	added.Kind, deleted.Kind = objects.Added, objects.Deleted
	for _, one := range []objects.Event{added, modified("2"), modified("3"), deleted} {
		all.PutEvent(key(), one)
	}
	taken := all.TakeEvents(key())
	if diff := cmp.Diff([]string{"added 1", "modified 3", "deleted 4"}, versions(taken)); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	all.PutEvent(key(), modified("5"))
	all.PutEventsBack(key(), taken[1:])
	if diff := cmp.Diff([]string{"modified 3", "deleted 4", "modified 5"}, versions(all.TakeEvents(key()))); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
}

// The first end of an object counts, and the last ten thousand are remembered.
func TestEndsAreRemembered(t *testing.T) {
	var all objects.Objects[string]
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	all.End("first", at)
	all.End("first", at.Add(time.Hour))
	if got := all.EndOf("first"); !got.Equal(at) {
		t.Errorf("the end is %v, want %v", got, at)
	}
	for i := range 10_000 {
		all.End(fmt.Sprint(i), at)
	}
	if got := all.EndOf("first"); !got.IsZero() {
		t.Errorf("after ten thousand others, the end is %v", got)
	}
	if got := all.EndOf("0"); !got.Equal(at) {
		t.Errorf("the end of the second is %v", got)
	}
}

// An object keeps its memo until it is forgotten.
func TestAMemoIsKept(t *testing.T) {
	var all objects.Objects[string]
	all.Memo("u")().Store("k", "v")
	if got, _ := all.Memo("u")().Load("k"); got != "v" {
		t.Errorf("the memo has %v", got)
	}
	all.ForgetMemo("u")
	if got, found := all.Memo("u")().Load("k"); found {
		t.Errorf("a forgotten memo has %v", got)
	}
}

// Edits of daemons are written in their order. Those for an object that had the name before are not.
func TestEditsStayInTheirOrder(t *testing.T) {
	var all objects.Objects[string]
	for _, edits := range []objects.Edits{{UID: "former"}, {UID: "u", Run: handler.Run{Attempt: 1}}, {UID: "u", Run: handler.Run{Attempt: 2}}} {
		all.PutEdits(key(), edits)
	}
	for attempt := 1; attempt <= 2; attempt++ {
		if next, found := all.TakeEdits(key(), "u"); !found || next.UID != "u" || next.Run.Attempt != attempt {
			t.Errorf("the next edits are %v, %t", next, found)
		}
	}
	if _, found := all.TakeEdits(key(), "u"); found || all.HasEdits(key()) || len(all.Keys()) != 0 {
		t.Error("edits are left")
	}
	all.PutEdits(key(), objects.Edits{UID: "former"})
	if !all.HasEdits(key()) {
		t.Error("there are no edits")
	}
	if _, found := all.TakeEdits(key(), "u"); found || all.HasEdits(key()) {
		t.Error("edits for another object are left")
	}
	all.PutEdits(key(), objects.Edits{UID: "u"})
	all.DropEdits(key())
	if all.HasEdits(key()) || len(all.Keys()) != 0 {
		t.Error("dropped edits are left")
	}
}
