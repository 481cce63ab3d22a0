package objects_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/objects"
)

// A later watch finds what an earlier one has delivered last. What its first list does not have is found apart.
func TestALaterWatchFindsWhatWasDelivered(t *testing.T) {
	var all objects.Objects[string]
	deliver := func(kind cause.Cause, name, version string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
		all.PutEvent(named(name), objects.Event{Kind: kind, Object: pod})
	}
	all.KeepDelivered(true)
	all.BeginWatch()
	deliver(objects.Added, "a", "1")
	deliver(objects.Modified, "a", "2")
	deliver(objects.Added, "b", "3")
	deliver(objects.Added, "c", "4")
	deliver(objects.Deleted, "c", "5")
	if all.Delivered(named("a")) != nil || len(all.NotListed()) > 0 {
		t.Error("the first watch finds something")
	}
	all.BeginWatch()
	if was := all.Delivered(named("a")); was == nil || was.GetResourceVersion() != "2" {
		t.Errorf("a was %v", was)
	}
	if all.Delivered(named("a")) != nil || all.Delivered(named("c")) != nil {
		t.Error("an object is found twice, or one that was deleted")
	}
	if left := all.NotListed(); len(left) != 1 || left[0].GetName() != "b" {
		t.Errorf("not listed are %v", left)
	}
	all.BeginWatch()
	if was := all.Delivered(named("a")); was == nil || was.GetResourceVersion() != "2" {
		t.Errorf("at the third watch, a was %v", was)
	}
}

// Objects are not kept if they are not wanted.
func TestWhatWasDeliveredIsNotKeptUnlessWanted(t *testing.T) {
	var all objects.Objects[string]
	all.BeginWatch()
	all.PutEvent(named("a"), objects.Event{Kind: objects.Added, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}})
	all.BeginWatch()
	if all.Delivered(named("a")) != nil {
		t.Error("an object was kept")
	}
}
