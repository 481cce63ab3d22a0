// Package report turns what was measured into medians, ratios and a picture.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// Report is what a run of the benchmark has measured.
type Report struct {
	Machine Machine `json:"machine"`
	// Objects is how many objects each operation is about.
	Objects  int       `json:"objects"`
	Subjects []Subject `json:"subjects"`
}

// Machine is where the benchmark ran.
type Machine struct {
	Time       string `json:"time"`
	Commit     string `json:"commit"`
	Go         string `json:"go"`
	Kernel     string `json:"kernel"`
	Processor  string `json:"processor"`
	Processors int    `json:"processors"`
	// Load is the average load of the machine over the minute before.
	Load string `json:"load"`
}

// Subject is an operator that was measured.
type Subject struct {
	Name   string  `json:"name"`
	Rounds []Round `json:"rounds"`
}

// Round is one run of a subject: it sees to the creation, an update and the deletion of all objects.
type Round struct {
	Create Operation `json:"create"`
	Update Operation `json:"update"`
	Delete Operation `json:"delete"`
	// Anonymous and Peak are memory in bytes: that of no file, with all objects created and at rest, and the most in all.
	Anonymous uint64 `json:"anonymousBytes"`
	Peak      uint64 `json:"peakBytes"`
}

// Operation is what one object has cost, on average.
type Operation struct {
	CPU       float64 `json:"cpuMicroseconds"`
	Allocated float64 `json:"allocatedBytes"`
	// Instructions were executed in user mode; 0 where the machine does not count them.
	Instructions float64 `json:"instructions,omitempty"`
	// Requests are those of the subject to the API server.
	Requests float64 `json:"requests"`
	// Drain is until the last object was seen to; Median and Slowest99 are from the request of a user until the object was seen to.
	Drain     float64 `json:"drainSeconds"`
	Median    float64 `json:"medianMilliseconds"`
	Slowest99 float64 `json:"p99Milliseconds"`
}

// Summary is the median of some figures, and how far apart they are: the difference of the highest and the lowest, as a part of the median.
type Summary struct{ Median, Spread float64 }

// Summarize returns the summary of at least one figure.
func Summarize(figures []float64) Summary {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	if median == 0 {
		return Summary{}
	}
	return Summary{median, (sorted[len(sorted)-1] - sorted[0]) / median}
}

// Percentile returns the figure below which a part of at least one figure lies.
func Percentile(figures []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// operation is one of a round.
type operation struct {
	name string
	of   func(Round) Operation
}

func operations() []operation {
	return []operation{
		{"create", func(r Round) Operation { return r.Create }},
		{"update", func(r Round) Operation { return r.Update }},
		{"delete", func(r Round) Operation { return r.Delete }},
	}
}

// of returns the summary of a figure of all rounds.
func (s Subject) of(figure func(Round) float64) Summary {
	var figures []float64
	for _, round := range s.Rounds {
		figures = append(figures, figure(round))
	}
	return Summarize(figures)
}

// reference returns the subject that the others are compared with.
func (r Report) reference(name string) (Subject, error) {
	for _, subject := range r.Subjects {
		if subject.Name == name {
			return subject, nil
		}
	}
	return Subject{}, fmt.Errorf("subject %s was not measured", name)
}

// Print writes tables for people. Ratios are to the subject with a name, if it was measured.
func (r Report) Print(to io.Writer, name string) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, one := range operations() {
		_, _ = fmt.Fprintf(table, "%s\tCPU µs\t±%%\tratio\tallocated KB\tratio\trequests\tdrain s\tmedian ms\tp99 ms\t\n", one.name)
		for _, subject := range r.Subjects {
			r.row(table, subject, one.of, name)
		}
		_, _ = fmt.Fprintln(table, "\t\t\t\t\t\t\t\t\t\t")
	}
	_, _ = fmt.Fprintln(table, "memory\tanonymous MB\t±%\tratio\tpeak MB\tratio\t\t\t\t\t")
	for _, subject := range r.Subjects {
		anonymous := func(r Round) float64 { return float64(r.Anonymous) / 1e6 }
		peak := func(r Round) float64 { return float64(r.Peak) / 1e6 }
		_, _ = fmt.Fprintf(table, "%s\t%.1f\t%.0f\t%s\t%.1f\t%s\t\t\t\t\t\n", subject.Name, subject.of(anonymous).Median, 100*subject.of(anonymous).Spread,
			r.ratio(subject, anonymous, name), subject.of(peak).Median, r.ratio(subject, peak, name))
	}
	return table.Flush()
}

func (r Report) row(table io.Writer, subject Subject, of func(Round) Operation, name string) {
	cpu := func(r Round) float64 { return of(r).CPU }
	allocated := func(r Round) float64 { return of(r).Allocated / 1e3 }
	_, _ = fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%s\t%.1f\t%s\t%.2f\t%.1f\t%.0f\t%.0f\t\n", subject.Name,
		subject.of(cpu).Median, 100*subject.of(cpu).Spread, r.ratio(subject, cpu, name),
		subject.of(allocated).Median, r.ratio(subject, allocated, name),
		subject.of(func(r Round) float64 { return of(r).Requests }).Median,
		subject.of(func(r Round) float64 { return of(r).Drain }).Median,
		subject.of(func(r Round) float64 { return of(r).Median }).Median,
		subject.of(func(r Round) float64 { return of(r).Slowest99 }).Median)
}

// ratio is the median of the ratios to the reference in each round, "" without one. What changes from round to round changes both.
func (r Report) ratio(subject Subject, figure func(Round) float64, name string) string {
	reference, err := r.reference(name)
	if err != nil || len(reference.Rounds) != len(subject.Rounds) {
		return ""
	}
	var ratios []float64
	for i, round := range subject.Rounds {
		ratios = append(ratios, figure(round)/figure(reference.Rounds[i]))
	}
	return fmt.Sprintf("%.2f", Summarize(ratios).Median)
}

// WriteJSON writes the whole report.
func (r Report) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
