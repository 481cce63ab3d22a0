package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// repository returns a repository with two packages that both have a test TestSame, and a list of parts.
func repository(list string) fstest.MapFS {
	return fstest.MapFS{
		listFile:            {Data: []byte(list)},
		budgetPage:          {Data: []byte("| `make fast` | 20 | all |\n")},
		"one/a_test.go":     {Data: []byte("package one\n\nfunc TestSame(t *testing.T) {}\n\nfunc TestOther(t *testing.T) {}\n")},
		"two/b_test.go":     {Data: []byte("package two\n\nfunc TestMain(m *testing.M) {}\n\nfunc TestSame(t *testing.T) {}\n")},
		"two/b.go":          {Data: []byte("package two\n\nfunc TestNothing() {}\n")},
		"bin/c_test.go":     {Data: []byte("func TestOfBin(t *testing.T) {}\n")},
		"bench/f_test.go":   {Data: []byte("func TestOfBench(t *testing.T) {}\n")},
		".git/d_test.go":    {Data: []byte("func TestOfGit(t *testing.T) {}\n")},
		"one/testdata/e.go": {Data: []byte("func TestData(t *testing.T) {}\n")},
	}
}

func read(t *testing.T, text string) list {
	t.Helper()
	result, err := readList(repository(text))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// partNamed returns a part.
func partNamed(t *testing.T, name string) part {
	t.Helper()
	chosen, err := chooseParts([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return chosen[0]
}

func TestALineAssignsTestsOfItsPackageOnly(t *testing.T) {
	of := read(t, "real two TestSame\nrace-quick one *\n")
	got := map[string][]string{}
	for _, name := range []string{"fast", "real", "race-quick", "race"} {
		for _, folder := range of.folders {
			if flags := partNamed(t, name).runs[0].testsOf(folder, of); flags != nil {
				got[name] = append(got[name], folder+" "+strings.Join(flags, " "))
			}
		}
	}
	want := map[string][]string{
		"fast":       {"one -test.run=."},
		"real":       {"two -test.run=^(TestSame)$"},
		"race-quick": {"one -test.run=."},
		"race":       {"one -test.run=.", "two -test.run=."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestThePatternForAllTestsLeavesOutThoseOfOtherParts(t *testing.T) {
	of := read(t, "explore one TestOther\nrace-quick one *\n")
	for _, name := range []string{"fast", "race-quick"} {
		got := partNamed(t, name).runs[0].testsOf("one", of)
		if want := []string{"-test.skip=^(TestOther)$"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestATestRunsOnceIfItRunsWithTheRaceDetector(t *testing.T) {
	of := read(t, "race-quick one TestSame\nrace-quick two *\n")
	of.raced = true
	fast := partNamed(t, "fast").runs[0]
	if got, want := fast.testsOf("one", of), []string{"-test.skip=^(TestSame)$"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := fast.testsOf("two", of); got != nil {
		t.Errorf("got %q for a package whose tests all run with the race detector, want none", got)
	}
}

func TestAMistakeInTheListIsAnErrorThatNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"# a comment\nreal TestSame\n":           listFile + `:2: must have a part, the folder of a package and a pattern`,
		"reel one TestSame\n":                    listFile + `:1: unknown part "reel"`,
		"real one Test(\n":                       listFile + `:1: the pattern is not a regular expression`,
		"budget fast none\n":                     listFile + `:1: the budget of fast must be a number of CPU seconds above 0, got "none"`,
		"real one TestGone\n":                    listFile + `:1: one has no test that matches TestGone`,
		"real two TestOther\n":                   listFile + `:1: two has no test that matches TestOther`,
		"race one TestSame\nreal one TestSame\n": listFile + `:2: TestSame of one is also in line 1`,
		"budget fast 21\n":                       budgetPage + `: the budget of fast is 21 CPU seconds in ` + listFile + `, got "20"`,
		"budget fast 20\nbudget real 5\n":        budgetPage + `: the budget of real is 5 CPU seconds in ` + listFile + `, got ""`,
		"real one TestSame\n":                    budgetPage + `: fast has no budget in ` + listFile,
	} {
		tree := repository(text)
		of, err := readList(tree)
		if err == nil {
			err = checkList(tree, of)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", text, err, want)
		}
	}
}

func TestACorrectListPasses(t *testing.T) {
	tree := repository("budget fast 20\nreal one TestSame\nrace-quick one TestSame\n")
	of, err := readList(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkList(tree, of); err != nil {
		t.Error(err)
	}
}
