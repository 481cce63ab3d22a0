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

// Percentages of the budget of a part.
const (
	warnAbove = 120
	failAbove = 150
)

// fullCaches is how much CPU time compiling and linking take at most if Go has already compiled what has not changed. With empty caches, tests that
// build programs use much more CPU time too, so budgets are not enforced.
const fullCaches = 400 * time.Second

// reporting says what a report contains.
type reporting struct {
	enforce bool // A part that uses more than failAbove of its budget has failed. A slow machine is taken into account.
	slowest int  // How many tests to list.
}

// report prints the times of all parts and returns an error that names what failed.
func (r *runner) report(to io.Writer, chosen []part, reports reporting) error {
	var failed []string
	if reports.enforce && r.builder.used.cpu > fullCaches {
		fmt.Fprintf(to, "\nBudgets are not enforced: compiling took more than %.0f CPU seconds, so the caches of Go were not full.\n", fullCaches.Seconds())
		reports.enforce = false
	}
	allowed := r.allowed(to, chosen)
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
		if percent := percentOf(done.used.cpu, budget); reports.enforce && percent > allowed {
			failed = append(failed, fmt.Sprintf("%s: used %d %% of its budget of CPU seconds; at most %d %% are allowed", one.name, percent, allowed))
		}
	}
	err := table.Flush()
	for _, one := range chosen {
		warn(to, r.results[one.name], r.list.budgets[one.name])
	}
	if reports.slowest > 0 {
		fmt.Fprintf(to, "\nThe slowest tests:\n%s", slowest(tests, reports.slowest))
	}
	if len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("%d failed in %s:\n  %s", len(failed), r.elapsed(), strings.Join(failed, "\n  ")))
	}
	fmt.Fprintf(to, "\n%s for all parts.\n%d passed, %d failed, %d skipped\n", r.elapsed(), passed, broken, skipped)
	return err
}

// allowed returns the percentage of its budget above which a part has failed, and prints why if that is more than failAbove.
func (r *runner) allowed(to io.Writer, chosen []part) int {
	usual := r.usual(chosen)
	if usual <= 100 {
		return failAbove
	}
	percent := failAbove * usual / 100
	fmt.Fprintf(to, "\nHalf of the parts used %d %% of their budgets or more, as on a slow machine. So at most %d %% are allowed.\n", usual, percent)
	return percent
}

// usual returns the median percentage of the budgets that the parts used, or 100 if there are fewer than three. On a machine that is slow for a while, all
// parts use more. A part that has become expensive stands out.
func (r *runner) usual(chosen []part) int {
	var all []int
	for _, one := range chosen {
		if percent := percentOf(r.results[one.name].used.cpu, r.list.budgets[one.name]); percent > 0 {
			all = append(all, percent)
		}
	}
	if len(all) < 3 {
		return 100
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
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
