package objects_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/objects"
)

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// The objects of the first list wait until they are done. Then one line tells how many there were, and how many had something to do.
func TestTheFirstListIsReportedOnce(t *testing.T) {
	var text bytes.Buffer
	list := objects.FirstList{Log: slog.New(slog.NewTextHandler(&text, nil))}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for i, name := range []string{"a", "b", "c", "b"} {
		list.Expect(named(name), at.Add(time.Duration(i)*time.Hour))
	}
	if keys, more := list.LongestWaiting(2); len(keys) > 0 || !more {
		t.Errorf("before the list is complete, %v wait longest, %t", keys, more)
	}
	list.Begin(named("a"))
	list.Invoked(named("a"))
	list.Invoked(named("a"))
	list.Done(named("a"))
	list.End()
	if !list.Complete() || list.AllDone() || list.Waits(named("a")) || !list.Waits(named("b")) {
		t.Errorf("complete %t, all done %t, a waits %t, b waits %t", list.Complete(), list.AllDone(), list.Waits(named("a")), list.Waits(named("b")))
	}
	list.Begin(named("b"))
	if keys, more := list.LongestWaiting(2); !slices.Equal(keys, []types.NamespacedName{named("c")}) || more {
		t.Errorf("%v wait longest, %t", keys, more)
	}
	list.Done(named("b"))
	list.Done(named("c"))
	list.Done(named("c"))
	if !list.AllDone() || strings.Count(text.String(), "caught up") != 1 || !strings.Contains(text.String(), "objects=3 handled=1") {
		t.Errorf("all done %t, the log is\n%s", list.AllDone(), text.String())
	}
	if !list.Predates(at.Add(3*time.Hour)) || list.Predates(at.Add(4*time.Hour)) {
		t.Error("an object counts as older than the operator, or as newer, and is not")
	}
}

// An object that is found after the first list was complete waits as well, and holds up neither the list nor its summary.
func TestAnObjectCanBeFoundLater(t *testing.T) {
	list := objects.FirstList{Log: slog.New(slog.DiscardHandler)}
	list.End()
	list.Expect(named("late"), time.Time{})
	if !list.Waits(named("late")) || list.AllDone() {
		t.Error("an object that was found later does not wait")
	}
	if keys, more := list.LongestWaiting(1); len(keys) > 0 || more {
		t.Errorf("%v wait longest, %t", keys, more)
	}
}
