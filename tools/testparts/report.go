package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// warnAbove is the percentage of its budget above which a part warns.
const warnAbove = 120

// report prints the times of all parts and the given number of slowest tests. It returns an error that names what failed.
func (r *runner) report(to io.Writer, chosen []part, listed int) error {
	var failed []string
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\npart\tCPU seconds\tbudget\twall time")
	fmt.Fprintf(table, "compile and link\t%.0f\t-\t%s\n", r.builder.used.cpu.Seconds(), minutes(r.builder.used.wall))
	var tests []timedTest
	var passed, broken, skipped int
	for _, one := range chosen {
		done := r.results[one.name]
		budget := r.list.budgets[one.name]
		fmt.Fprintf(table, "%s\t%.0f\t%s\t%s\n", one.name, done.used.cpu.Seconds(), budgetText(budget), minutes(done.used.wall))
		failed = append(failed, done.failures...)
		for _, each := range done.outcomes {
			passed, broken, skipped = passed+each.passed, broken+each.failed, skipped+each.skipped
			tests = append(tests, each.slow...)
			if each.err != nil {
				failed = append(failed, one.name+": "+each.folder)
			}
		}
	}
	err := table.Flush()
	for _, one := range chosen {
		warn(to, r.results[one.name], r.list.budgets[one.name])
	}
	if listed > 0 {
		fmt.Fprintf(to, "\nThe slowest tests:\n%s", slowest(tests, listed))
	}
	if len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("%d failed in %s:\n  %s", len(failed), r.elapsed(), strings.Join(failed, "\n  ")))
	}
	fmt.Fprintf(to, "\n%s for all parts.\n%d passed, %d failed, %d skipped\n", r.elapsed(), passed, broken, skipped)
	return err
}

// warn prints the ten slowest tests of a part that uses much more than its budget.
func warn(to io.Writer, of *result, budget int) {
	percent := percentOf(of.used.cpu, budget)
	if percent <= warnAbove {
		return
	}
	var tests []timedTest
	for _, one := range of.outcomes {
		tests = append(tests, one.slow...)
	}
	fmt.Fprintf(to, "\nWarning: %s used %d %% of its budget of CPU seconds. Make tests cheaper, move long ones to a part of \"make test-all\",\n"+
		"or raise the budget in %s and %s. The slowest tests:\n%s", of.part, percent, listFile, budgetPage, slowest(tests, 10))
}

func percentOf(used time.Duration, budget int) int {
	if budget == 0 {
		return 0
	}
	return int(used.Seconds() * 100 / float64(budget))
}

func budgetText(budget int) string {
	if budget == 0 {
		return "-"
	}
	return fmt.Sprint(budget)
}

// slowest returns a line for each of the slowest tests.
func slowest(tests []timedTest, most int) string {
	slices.SortFunc(tests, func(a, b timedTest) int { return cmp.Compare(b.took, a.took) })
	var lines strings.Builder
	for _, one := range tests[:min(most, len(tests))] {
		fmt.Fprintf(&lines, "  %6.1fs  %s  %s\n", one.took.Seconds(), one.folder, one.name)
	}
	return lines.String()
}
