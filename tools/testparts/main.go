// Testparts builds and runs the tests of this repository in parts, and measures the CPU seconds of each part.
//
// The file tools/test-parts.txt assigns tests to parts and gives parts a budget. See the usage for the parts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// listFile assigns tests to parts, budgetPage is the page with a table of the budgets. Both are relative to the repository.
const (
	listFile   = "tools/test-parts.txt"
	budgetPage = "CONTRIBUTING.md"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "testparts:", err)
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "testparts:", err)
	os.Exit(1)
}

// errUsage marks an error of the command line.
var errUsage = errors.New("see testparts -help")

// command runs the program with its arguments, and prints to a writer. It must run in the root folder of the repository.
func command(ctx context.Context, arguments []string, to io.Writer) error {
	flags := flag.NewFlagSet("testparts", flag.ContinueOnError)
	flags.SetOutput(to)
	flags.Usage = func() { usage(flags) }
	check := flags.Bool("check", false, "do not run tests: check "+listFile+", and that "+budgetPage+" shows its budgets")
	slowest := flags.Int("slowest", 0, "print this number of tests that took longest")
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	list, err := readList(os.DirFS("."))
	if err != nil {
		return err
	}
	if *check {
		return checkList(os.DirFS("."), list)
	}
	chosen, err := chooseParts(flags.Args())
	if err != nil {
		return err
	}
	return runParts(ctx, to, list, chosen, *slowest)
}

// chooseParts returns the parts with the given names.
func chooseParts(names []string) ([]part, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: name at least one part", errUsage)
	}
	var chosen []part
	for _, name := range names {
		at := slices.IndexFunc(parts(), func(one part) bool { return one.name == name })
		if at < 0 {
			return nil, fmt.Errorf("%w: unknown part %q", errUsage, name)
		}
		chosen = append(chosen, parts()[at])
	}
	return chosen, nil
}

func usage(flags *flag.FlagSet) {
	to := flags.Output()
	fmt.Fprintf(to, `Usage: go run ./tools/testparts [FLAGS] PART...

Builds and runs parts of the tests. %s says which test belongs to which part.

Parts:
`, listFile)
	for _, one := range parts() {
		fmt.Fprintf(to, "  %-14s %s\n", one.name, strings.ReplaceAll(one.about, "\n", "\n"+strings.Repeat(" ", 17)))
	}
	fmt.Fprint(to, `
The test binary of a package is linked once for all parts, and stays in the directory that the environment variable EINMAL_TEST_BINARIES names, by
default bin/tests. Results are never cached. The part real mostly waits, so it runs beside the other parts. Node-quick runs after them: with a small
share of a busy machine, its containers miss their probes. Tests of "real" share a control plane, which this program starts. If the environment variable
EINMAL_TEST_KUBECONFIG names the kubeconfig of a devcluster, they use that one.

The CPU seconds of a part are those of its test binaries and of all processes that these wait for, without compiling and linking. More than
120 % of the budget prints a warning with the ten slowest tests.

Flags:
`)
	flags.PrintDefaults()
}
