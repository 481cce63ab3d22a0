package journal_test

import (
	"fmt"
	"testing"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// part is a part of each reconciliation. It allocates so often, or a tenth more if it takes memory from pools: the garbage collector and the race detector empty
// them.
type part struct {
	title       string
	allocations float64
	do          func()
	pooled      bool
}

// usual returns an object of a usual size, with a value in the middle of it.
func usual(size string) object.Body {
	var containers []any
	for i := range 3 {
		containers = append(containers, object.Body{
			"name": fmt.Sprint("app-", i), "image": "registry.example.com/app:1.2.3", "ports": []any{object.Body{"containerPort": int64(8080)}},
			"env": []any{object.Body{"name": "SIZE", "value": size}, object.Body{"name": "MODE", "value": "production"}},
		})
	}
	return object.Body{
		"apiVersion": "v1", "kind": "Widget",
		"metadata": object.Body{
			"name": "one", "namespace": "default", "uid": "u", "generation": int64(3), "resourceVersion": "12345",
			"labels": object.Body{"app": "one", "team": "payments", "tier": "backend"},
		},
		"spec":   object.Body{"size": size, "replicas": int64(3), "template": object.Body{"spec": object.Body{"containers": containers}}},
		"status": object.Body{"phase": "Ready", "replicas": int64(3)},
	}
}

func parts(tb testing.TB) []part {
	tb.Helper()
	before, same, after := usual("1"), usual("1"), usual("2")
	kept, digest := record.New("u", "v1").Keep(essence(before), nil)
	kept.Base = digest
	kept = kept.With("resize", record.Entry{Cause: string(cause.Update), Outcome: record.Retry, Attempts: 2, Message: "the server is away"})
	text, err := kept.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	edits := patch.Lists(nil).Edits(before, object.With(before, object.Path{"status", "phase"}, "Busy"))
	return []part{
		{"difference of two objects", 12, func() { object.Diff(before, after) }, false},
		{"difference of equal objects", 8, func() { object.Diff(before, same) }, false},
		{"essence of an object", 5, func() { essence(before) }, false},
		{"record to text", 200, func() { _, _ = kept.Encode() }, true},
		{"text to record", 182, func() { _, _ = record.Decode(text) }, false},
		{"changes of a handler", 16, func() { patch.Lists(nil).Edits(before, after) }, false},
		{"patch", 26, func() {
			document := patch.New(before)
			for _, edit := range edits {
				document.Edit(edit)
			}
			_ = document.Operations()
		}, false},
	}
}

// Garbage of each reconciliation is paid for twice: when it is made, and when it is collected. A part that allocates more often than before says so here.
func TestPartsOfAReconciliationAllocateLittle(t *testing.T) {
	for _, one := range parts(t) {
		got := testing.AllocsPerRun(100, one.do)
		if got < one.allocations || got > one.allocations && !one.pooled || got > 1.1*one.allocations {
			t.Errorf("%s: %v allocations, want %v", one.title, got, one.allocations)
		}
	}
}

func BenchmarkPart(b *testing.B) {
	for _, one := range parts(b) {
		b.Run(one.title, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one.do()
			}
		})
	}
}
