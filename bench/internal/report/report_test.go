package report_test

import (
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/bench/internal/report"
)

func TestTheMedianAndTheSpreadOfRounds(t *testing.T) {
	for name, test := range map[string]struct {
		figures []float64
		want    report.Summary
	}{
		"one":   {[]float64{4}, report.Summary{Median: 4}},
		"two":   {[]float64{4, 2}, report.Summary{Median: 3, Spread: 2.0 / 3}},
		"three": {[]float64{5, 1, 4}, report.Summary{Median: 4, Spread: 1}},
		"none":  {[]float64{0, 0}, report.Summary{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := report.Summarize(test.figures); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestAPercentileIsOneOfTheFigures(t *testing.T) {
	figures := []float64{5, 4, 3, 2, 1}
	for part, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := report.Percentile(figures, part); got != want {
			t.Errorf("%v: got %v, want %v", part, got, want)
		}
	}
}

// Tables and the picture show the medians, and those of the ratios to the reference in each round.
func TestSubjectsAreComparedWithTheReference(t *testing.T) {
	of := func(cpu float64) report.Round {
		one := report.Operation{CPU: cpu, Allocated: 1e5, Requests: 1}
		return report.Round{Create: one, Update: one, Delete: one, Anonymous: 1e7, Peak: 2e7}
	}
	measured := report.Report{Objects: 10, Subjects: []report.Subject{
		{Name: "reference", Rounds: []report.Round{of(100), of(80), of(120)}}, {Name: "einmal", Rounds: []report.Round{of(150), of(125), of(500)}},
	}}
	var table, picture strings.Builder
	if err := measured.Print(&table, "reference"); err != nil {
		t.Fatal(err)
	}
	if err := measured.Draw(&picture, "reference"); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(table.String(), "\n") {
		if fields := strings.Fields(line); len(fields) > 3 && fields[0] == "einmal" && fields[3] != "1.56" && fields[3] != "1.00" {
			t.Errorf("line %q, want the ratio 1.56", line)
		}
	}
	if got := strings.Count(picture.String(), "150 µs (×1.56)"); got != 3 {
		t.Errorf("the picture has %d bars of 150 µs, want 3:\n%s", got, &picture)
	}
}
