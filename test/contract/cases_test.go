package contract_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/test/contract"
)

const (
	casesFile = "CASES.md"
	// casesVariable makes the test write the file.
	casesVariable = "EINMAL_WRITE_CASES"
)

// One contract suite runs against the server in memory and the real one. What is in it is there to be read.
func TestTheListOfCasesIsComplete(t *testing.T) {
	listed := listOfCases(t, contract.Cases())
	if os.Getenv(casesVariable) != "" {
		if err := os.WriteFile(casesFile, []byte(listed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(written), "\n"), strings.Split(listed, "\n")); diff != "" {
		t.Errorf("%s=1 go test ./test/contract -run TestTheListOfCases writes %s: %s", casesVariable, casesFile, diff)
	}
}

// listOfCases is the file: what there is about what, and then each case.
func listOfCases(t *testing.T, names []string) string {
	t.Helper()
	var groups []string
	cases := map[string][]string{}
	known := map[string]bool{}
	for _, name := range names {
		group, says, named := strings.Cut(name, ": ")
		if !named || known[name] || strings.Contains(group, "/") {
			t.Errorf("%q: a case has a name of its own, which begins with what it is about and a colon", name)
		}
		known[name] = true
		if cases[group] == nil {
			groups = append(groups, group)
		}
		cases[group] = append(cases[group], says)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# What an API server does: %d cases\n\nEach is tested on the server in memory and on the real one.", len(names))
	text.WriteString(" A group is tested alone with its name:\n`go test ./test/contract -run 'TestContract$/watch:'`.\n\n")
	text.WriteString("One behaviour is not compared: a continue token that has expired. A real API server compacts its history every five minutes, and\n" +
		"devcluster has no setting for this interval. TestAnExpiredContinueTokenOffersToContinueAtThePresent in package apiserver shows the\n" +
		"answer 410 of the server in memory alone.\n\n")
	text.WriteString("| group | cases |\n|---|---|\n")
	for _, group := range groups {
		fmt.Fprintf(&text, "| %s | %d |\n", group, len(cases[group]))
	}
	for _, group := range groups {
		fmt.Fprintf(&text, "\n## %s\n\n", group)
		for _, says := range cases[group] {
			fmt.Fprintf(&text, "- %s\n", says)
		}
	}
	return text.String()
}
