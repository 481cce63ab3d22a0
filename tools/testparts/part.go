package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A part is a set of tests that run under the same conditions.
type part struct {
	name, about string
	runs        []run
	waits       bool // It mostly waits, so it runs beside the other parts.
	alone       bool // It runs after the other parts: containers with a small share of a busy machine miss their probes.
}

// A run runs tests of several packages.
type run struct {
	title   string   // What distinguishes it from the other runs of its part.
	install []string // Scripts that find or install what the tests need.
	lists   []string // It runs the tests that the list assigns to these parts.
	rest    bool     // It runs all other tests of the packages instead.
	only    string   // The name of a single test that it runs instead.
	race    bool
	shuffle bool
	cluster bool // Its tests share a control plane.
	env     []string
	timeout time.Duration                // Of each package.
	needs   func(context.Context) string // Says why this machine cannot run it, or "". Nil if every machine can.
}

const (
	raceQuick  = "race-quick"
	servers    = "tools/servers.sh"
	containerd = "tools/containerd.sh"
)

// parts returns all parts, in the order in which the usage shows them.
func parts() []part {
	return append(shortParts(), longParts()...)
}

// shortParts returns the parts of "make test", and race-quick.
func shortParts() []part {
	return []part{
		{
			name:  "fast",
			about: "all modules, without a control plane; most tests run in virtual time",
			runs: []run{{
				rest: true, install: []string{servers}, timeout: 10 * time.Minute,
				// A test that starts a control plane fails, and prints this text.
				env: []string{"EINMAL_DEVCLUSTER=no control plane in this part: list the test in " + listFile},
			}},
		},
		{
			name: raceQuick,
			about: "with the race detector: the packages with the most concurrency, and some tests in virtual time.\n" +
				"These tests belong to another part too. If race-quick runs beside fast, fast leaves them out",
			runs: []run{{
				lists: []string{raceQuick}, race: true, install: []string{servers}, timeout: 10 * time.Minute,
				env: []string{"EINMALTEST_QUICK=1"},
			}},
		},
		{
			name:  "real",
			about: "on real control planes",
			waits: true,
			runs:  []run{{lists: []string{"real"}, cluster: true, install: []string{servers}, timeout: 15 * time.Minute}},
		},
		{
			name:  "explore-quick",
			about: "explorations: a crash before and after each write and effect, and a sample of the other faults",
			runs: []run{{
				lists: []string{"explore-quick"}, timeout: 15 * time.Minute,
				env: []string{"EINMALTEST_QUICK=1", "EINMALTEST_SEED=1"},
			}},
		},
		{
			name: "node-quick",
			about: "a database as a Pod on a real node of devcluster; needs Linux and root, and installs containerd with apt-get.\n" +
				"On a machine that cannot run a real node, it prints why",
			alone: true,
			runs:  []run{{lists: []string{"node-quick"}, install: nodeScripts(), timeout: 10 * time.Minute, needs: nodeRequirements}},
		},
	}
}

// longParts returns the parts of "make test-all".
func longParts() []part {
	seed, share := os.Getenv("EINMALTEST_SEED"), os.Getenv("EINMALTEST_ALL")
	if seed == "" {
		seed = fmt.Sprint(rand.IntN(1 << 15)) //nolint:gosec // A sample of faults is no secret.
	}
	if share == "" {
		share = fmt.Sprintf("%d/40", rand.IntN(40)+1) //nolint:gosec // Likewise.
	}
	return []part{
		{
			name:  "race",
			about: "all tests except those of the parts below, with the race detector and in random order",
			runs: []run{{
				lists: []string{"race", "real"}, rest: true, race: true, shuffle: true, install: []string{servers},
				timeout: 45 * time.Minute,
			}},
		},
		{
			name:  "explore",
			about: "explorations, with another sample of faults each time; EINMALTEST_SEED=N repeats a sample",
			runs: []run{{
				title: "with seed " + seed, lists: []string{"explore-quick", "explore"}, install: []string{servers},
				timeout: 180 * time.Minute, env: []string{"EINMALTEST_SEED=" + seed},
			}},
		},
		{
			name:  "mutate",
			about: "injects each known bug and checks that a test catches it",
			runs:  []run{{lists: []string{"mutate"}, timeout: 25 * time.Minute}},
		},
		{
			name: "soak",
			about: "large numbers, 200 kills, 50 switchovers, outages, hostile tenants, and a random fortieth of all schedules of explorations;\n" +
				"EINMALTEST_ALL=K/N plays another share, EINMALTEST_ALL=1 all of them",
			runs: soakRuns(share),
		},
		{
			name:  "field",
			about: "on a real control plane: situations from public bug reports about other operators",
			runs:  []run{{lists: []string{"field"}, timeout: 15 * time.Minute}},
		},
		{
			name:  "node",
			about: "Pods as containers on real nodes of devcluster; needs Linux and root, and installs containerd with apt-get",
			runs:  []run{{lists: []string{"node"}, install: []string{containerd}, timeout: 50 * time.Minute}},
		},
		{
			name:  "terraform",
			about: "\"terraform apply\" of a Tenant; prints a notice if terraform is not available",
			runs:  []run{{lists: []string{"terraform"}, install: []string{"tools/terraform.sh", servers}, timeout: 25 * time.Minute}},
		},
	}
}

// soakRuns returns the runs of the part soak. The last one plays a share of all schedules.
func soakRuns(share string) []run {
	return []run{
		{title: "large numbers, outages and hostile tenants", lists: []string{"soak"}, install: []string{servers}, timeout: 25 * time.Minute},
		{title: "200 kills", only: "TestAKilledOperatorEndsTheSame", timeout: 25 * time.Minute, env: []string{"EINMAL_KILLS=200"}},
		{
			title: "50 switchovers", only: "TestNodeSwitchesOver", install: []string{containerd}, timeout: 40 * time.Minute,
			env: []string{"EINMAL_SWITCHOVERS=50"},
		},
		{
			title: "share " + share + " of all schedules", lists: []string{"explore-quick"}, timeout: 60 * time.Minute,
			env: []string{"EINMALTEST_ALL=" + share},
		},
	}
}

// nodeScripts returns the scripts that install what a real node needs. Without root on Linux there is none, since nodeRequirements then says why the
// part does not run.
func nodeScripts() []string {
	if runtime.GOOS == "linux" && os.Geteuid() == 0 {
		return []string{containerd}
	}
	return nil
}

// additional reports whether the tests of a part also belong to another part.
func additional(part string) bool { return part == raceQuick }

// testsOf returns the flags that select the tests of a package, or nil if the run has none there.
func (r run) testsOf(folder string, of list) []string {
	var chosen, skipped []string
	all := r.rest
	switch {
	case r.only != "":
		chosen = []string{r.only}
	case r.rest:
	default:
		chosen = of.of(folder, r.lists...)
		all = slices.Contains(chosen, allOthers)
	}
	if all {
		chosen, skipped = nil, of.assigned(folder, r.lists)
	}
	if r.rest && of.raced {
		skipped = append(skipped, of.of(folder, raceQuick)...)
	}
	runs := func(test string) bool {
		return !matchesAny(skipped, test) && (all || matchesAny(chosen, test))
	}
	switch {
	case !slices.ContainsFunc(of.tests[folder], runs):
		return nil
	case !all:
		return []string{"-test.run=" + wholeNames(chosen)}
	case len(skipped) > 0:
		return []string{"-test.skip=" + wholeNames(skipped)}
	}
	return []string{"-test.run=."}
}

// wholeNames returns a regular expression that matches the names that one of the patterns matches as a whole.
func wholeNames(patterns []string) string {
	return "^(" + strings.Join(patterns, "|") + ")$"
}

func matchesAny(patterns []string, test string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return listLine{pattern: pattern}.matches(test) })
}
