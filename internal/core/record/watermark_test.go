package record_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// Design §5, Watermark.
func TestTheWatermarkFollowsRecordedObjects(t *testing.T) {
	start := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	w := record.Watermark{Margin: 10 * time.Minute}
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
	w.Missing("d", minute(2))
	expect(60, 0, false) // An object without a record keeps it below.
	w.Recorded("e", minute(5))
	w.Recorded("d", minute(2))
	expect(60, 5, true)
	w.Missing("f", minute(7))
	w.Recorded("g", minute(8))
	expect(60, 0, false)
	w.Gone("f")
	expect(60, 8, true)
	w.Recorded("a", minute(1))
	expect(1000, 0, false)
}
