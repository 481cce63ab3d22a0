package repo_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scenariosPage is the table of scenarios, and writeScenarios the environment variable that makes the test write its last
// column.
const (
	scenariosPage  = "docs/concepts/scenarios.md"
	writeScenarios = "EINMAL_WRITE_SCENARIOS"
)

// The table of scenarios is complete and true: each promised scenario has a row, and the row names every script and test that cites the
// scenario.
func TestTheTableOfScenariosIsComplete(t *testing.T) {
	page, err := os.ReadFile(scenariosPage)
	if err != nil {
		t.Fatal(err)
	}
	shown := shownScenarios(t)
	promised := promisedScenarios()
	row := regexp.MustCompile(`^\| (\d+)(\*?) \| (.*) \| (.*) \|$`)
	var lines []string
	for line := range strings.SplitSeq(string(page), "\n") {
		if found := row.FindStringSubmatch(line); found != nil {
			number, _ := strconv.Atoi(found[1])
			if len(shown[number]) == 0 {
				t.Errorf("scenario %d is shown by nothing", number)
			}
			line = fmt.Sprintf("| %s%s | %s | %s |", found[1], found[2], found[3], strings.Join(shown[number], ", "))
			promised = slices.DeleteFunc(promised, func(n int) bool { return n == number })
		}
		lines = append(lines, line)
	}
	if len(promised) > 0 {
		t.Errorf("these scenarios have no row: %v", promised)
	}
	want := strings.Join(lines, "\n")
	if all, real := len(promisedScenarios()), len(regexp.MustCompile(`(?m)^\|.*\*\*\[`).FindAllString(want, -1)); 3*real < all {
		t.Errorf("only %d of %d scenarios are shown on a real control plane, want a third", real, all)
	}
	if os.Getenv(writeScenarios) != "" {
		if err := os.WriteFile(scenariosPage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(string(page), "\n"), lines); diff != "" {
		t.Errorf("%s=1 go test -run %s ./test/repo writes the table: %s", writeScenarios, t.Name(), diff)
	}
}

// The pages on concepts link to existing tests: each link to a test file has the name of a test there, or of a part of one.
func TestThePagesNameTestsThatAreThere(t *testing.T) {
	pages, err := filepath.Glob("docs/concepts/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	link := regexp.MustCompile(`\[([^\]]+)\]\(([^)]+_test\.go)\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range link.FindAllStringSubmatch(string(text), -1) {
			tests, err := os.ReadFile(filepath.Join(filepath.Dir(page), named[2]))
			if err != nil {
				t.Errorf("%s: %v", page, err)
			} else if !strings.Contains(string(tests), "func "+named[1]+"(") && !strings.Contains(string(tests), named[1]+" (scenario") {
				t.Errorf("%s: there is no test %s in %s", page, named[1], named[2])
			}
		}
	}
}

// promisedScenarios returns the numbers of the scenarios that are implemented.
func promisedScenarios() []int {
	var all []int
	for _, span := range [][2]int{{1, 94}, {99, 101}, {106, 106}, {108, 108}} {
		for n := span[0]; n <= span[1]; n++ {
			all = append(all, n)
		}
	}
	return all
}

// shownScenarios lists for each number the scripts and tests that cite it, as links.
func shownScenarios(t *testing.T) map[int][]string {
	t.Helper()
	shown := map[int][]string{}
	note := func(text, link string) {
		for _, number := range cited(text) {
			if !slices.Contains(shown[number], link) {
				shown[number] = append(shown[number], link)
			}
		}
	}
	scripts, err := filepath.Glob("test/scripts/testdata/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		story, _, _ := strings.Cut(string(text), "\n-- ")
		note(story, fmt.Sprintf("[%s](../../%s)", strings.TrimSuffix(filepath.Base(name), ".txtar"), name))
	}
	for _, name := range testFiles(t) {
		noteTests(t, name, note)
	}
	return shown
}

// testFiles returns the files of tests that can show a scenario.
func testFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"internal/*/*_test.go", "test/*/*_test.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no tests match %s: %v", pattern, err)
		}
		all = append(all, found...)
	}
	return all
}

// noteTests notes the scenarios that the tests of a file cite, in their comments and in the titles of their parts.
func noteTests(t *testing.T, name string, note func(text, link string)) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, declared := range file.Decls {
		function, is := declared.(*ast.FuncDecl)
		if !is {
			continue
		}
		mark := ""
		if onRealServers(function) {
			mark = "**"
		}
		if strings.HasPrefix(function.Name.Name, "Test") {
			note(function.Doc.Text(), fmt.Sprintf("%[1]s[%[2]s](../../%[3]s)%[1]s", mark, function.Name.Name, name))
		}
		ast.Inspect(function, func(node ast.Node) bool {
			literal, is := node.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING || !strings.Contains(literal.Value, "(scenario") {
				return true
			}
			title, _, _ := strings.Cut(strings.Trim(literal.Value, "\"`"), " (scenario")
			note(literal.Value, fmt.Sprintf("%[1]s[%[2]s](../../%[3]s)%[1]s", mark, title, name))
			return true
		})
	}
}

// onRealServers reports whether a test, or a part of one, runs on the real control plane.
func onRealServers(function *ast.FuncDecl) bool {
	if function.Recv == nil {
		return strings.HasSuffix(function.Name.Name, "RealControlPlane")
	}
	of, is := function.Recv.List[0].Type.(*ast.StarExpr)
	return is && fmt.Sprint(of.X) == "world"
}

// cited returns the numbers of the scenarios that a text names: scenario 4, scenarios 1, 2 and 3, scenarios 5 to 7.
func cited(text string) []int {
	text = strings.Join(strings.Fields(text), " ")
	list := regexp.MustCompile(`(?i)\bscenarios? (\d+\*?(?:(?: to |, and |, | and )\d+\*?)*)`)
	part := regexp.MustCompile(`(\d+)\*?(?: to (\d+))?`)
	var numbers []int
	for _, found := range list.FindAllStringSubmatch(text, -1) {
		for _, span := range part.FindAllStringSubmatch(found[1], -1) {
			first, _ := strconv.Atoi(span[1])
			last := first
			if span[2] != "" {
				last, _ = strconv.Atoi(span[2])
			}
			for n := first; n <= last; n++ {
				numbers = append(numbers, n)
			}
		}
	}
	return numbers
}
