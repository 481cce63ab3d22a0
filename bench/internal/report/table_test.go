package report_test

import (
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/bench/internal/report"
)

// Each figure has a line, and its ratio to that of the reference where there is one.
func TestATableComparesEachFigureWithTheReference(t *testing.T) {
	table := report.Table{Title: "rest, 10 objects", Columns: []report.Column{
		{Subject: "reference", Figures: []report.Figure{{Name: "memory", Value: 20}, {Name: "requests", Value: 0}}},
		{Subject: "einmal", Figures: []report.Figure{{Name: "memory", Value: 30}, {Name: "requests", Value: 1}}},
	}}
	var text strings.Builder
	if err := table.Print(&text, "reference"); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"rest, 10 objects reference ratio einmal ratio", "memory 20 1.00 30 1.50", "requests 0 1"}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
