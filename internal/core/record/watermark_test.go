package record_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// The watermark rises with the objects that have records.
func TestTheWatermarkFollowsRecordedObjects(t *testing.T) {
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	w := record.NewWatermark(time.Time{}, 10*time.Minute)
	expect := func(now int, want int, moves bool) {
		t.Helper()
		got, moved := w.Next(minute(now))
		if moved != moves || moved && !got.Equal(minute(want)) {
			t.Errorf("at minute %d: %s, %t; want minute %d, %t", now, got, moved, want, moves)
		}
		if moved {
			w.Moved(got)
		}
	}
	if w.Covers(minute(0)) {
		t.Error("without a watermark it covers something")
	}
	expect(0, 0, false)
	w.Recorded("a", minute(1))
	w.Recorded("b", minute(1))
	w.Recorded("c", minute(3))
	expect(10, 0, false) // Within the margin.
	expect(11, 1, true)
	expect(12, 0, false) // It moves only when there is something to pass.
	if !w.Covers(minute(1)) || !w.Covers(minute(0)) || w.Covers(minute(2)) {
		t.Error("it covers the wrong objects")
	}
	w.Missing("d", "default/d", minute(2))
	expect(60, 0, false) // An object without a record keeps it below.
	w.Recorded("e", minute(5))
	w.Recorded("d", minute(2))
	expect(60, 5, true)
	w.Missing("f", "default/f", minute(7))
	w.Recorded("g", minute(8))
	expect(60, 0, false)
	w.Gone("f")
	expect(60, 8, true)
	w.Recorded("a", minute(1))
	expect(1000, 0, false)
}

// An object that arrives although the watermark covers it lowers the stored watermark until it has a record. It does not change what is
// known about other objects.
func TestTheWatermarkFallsForAnObjectThatArrivesLate(t *testing.T) {
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	w := record.NewWatermark(start, time.Minute)
	if w.Arrived("new", "default/new", start.Add(time.Second)) {
		t.Error("an object above the watermark counts as late")
	}
	w.Recorded("new", start.Add(time.Second))
	if !w.Arrived("late", "default/late", start.Add(-time.Hour)) {
		t.Error("an object below the watermark does not count as late")
	}
	lower := start.Add(-time.Hour - time.Second)
	next, moved := w.Next(start.Add(time.Hour))
	if !moved || !next.Equal(lower) || !w.Lowers(next) {
		t.Errorf("next is %s, %t; want %s", next, moved, lower)
	}
	w.Moved(next)
	if !w.Covers(start) {
		t.Error("objects that the watermark covered are not covered any more")
	}
	if next, moved := w.Next(start.Add(time.Hour)); moved {
		t.Errorf("it moves again, to %s", next)
	}
	w.Recorded("late", start.Add(-time.Hour))
	if next, moved := w.Next(start.Add(time.Hour)); !moved || !next.Equal(start.Add(time.Second)) {
		t.Errorf("when the late object has a record, next is %s, %t", next, moved)
	}
}

// One object without a record holds the watermark back. Objects that are created during the following months take no more memory, and
// the watermark jumps to the newest of them when the one is gone.
func TestTheWatermarkIsBoundedInMemory(t *testing.T) {
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	w := record.NewWatermark(start, time.Minute)
	w.Arrived("stuck", "default/stuck", start.Add(time.Second))
	now := start
	allocated := testing.AllocsPerRun(1, func() {
		for range 20_000 {
			now = now.Add(5 * time.Minute)
			w.Recorded("another", now)
		}
	})
	if allocated > 0 { // The first of two runs has filled the buffers.
		t.Errorf("it allocated %v times", allocated)
	}
	late := now.Add(time.Hour)
	if by, uid, held := w.Held(late); !held || uid != "stuck" || by.Name != "default/stuck" {
		t.Errorf("held back by %v (%q), %t", by, uid, held)
	}
	if next, moved := w.Next(late); moved {
		t.Errorf("it moves past an object without a record, to %s", next)
	}
	w.Gone("stuck")
	if next, moved := w.Next(late); !moved || !next.Equal(now) {
		t.Errorf("next is %s, %t; want %s", next, moved, now)
	}
}

// BenchmarkWatermark measures the first start of an operator with 100,000 objects.
func BenchmarkWatermark(b *testing.B) {
	const objects = 100_000
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	created, uids := make([]time.Time, objects), make([]string, objects)
	for i, second := range rand.New(rand.NewPCG(1, 2)).Perm(objects) {
		created[i], uids[i] = start.Add(time.Duration(second)*time.Second), fmt.Sprint(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		w := record.NewWatermark(time.Time{}, 10*time.Minute)
		for i := range created {
			w.Missing(uids[i], uids[i], created[i])
		}
		for i := range created {
			w.Recorded(uids[i], created[i])
		}
		if next, moved := w.Next(start.Add(30 * 24 * time.Hour)); !moved || !next.Equal(start.Add((objects-1)*time.Second)) {
			b.Fatalf("next is %s", next)
		}
	}
}
