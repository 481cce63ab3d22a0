package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A list is the content of tools/test-parts.txt, with the tests that the repository has.
type list struct {
	lines   []listLine
	budgets map[string]int // CPU seconds, by part.
	tests   map[string][]string
	folders []string // Those with tests, in the order of their paths.
	raced   bool     // The part race-quick runs too, so the part fast leaves its tests out.
}

// A listLine assigns tests of one package to a part.
type listLine struct {
	part, folder string
	pattern      string // Matches the whole name of a test.
	number       int
}

// allOthers is the pattern for all tests of a package that no other line assigns.
const allOthers = "*"

// matches reports whether the line assigns a test of its package.
func (l listLine) matches(test string) bool {
	return l.pattern == allOthers || regexp.MustCompile("^("+l.pattern+")$").MatchString(test)
}

// readList reads tools/test-parts.txt and finds the tests of all packages. A malformed line is an error that names it.
func readList(root fs.FS) (list, error) {
	text, err := fs.ReadFile(root, listFile)
	if err != nil {
		return list{}, fmt.Errorf("read the list of parts: %w", err)
	}
	result := list{budgets: map[string]int{}}
	for number, line := range slices.Collect(strings.SplitSeq(string(text), "\n")) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if err := result.add(fields, number+1); err != nil {
			return list{}, fmt.Errorf("%s:%d: %w", listFile, number+1, err)
		}
	}
	result.tests, err = findTests(root)
	if err != nil {
		return list{}, fmt.Errorf("find tests: %w", err)
	}
	for folder := range result.tests {
		result.folders = append(result.folders, folder)
	}
	slices.Sort(result.folders)
	return result, nil
}

// add adds the fields of a line.
func (l *list) add(fields []string, number int) error {
	if len(fields) != 3 {
		return fmt.Errorf("must have a part, the folder of a package and a pattern, or \"budget\", a part and CPU seconds; got %d fields", len(fields))
	}
	if fields[0] == "budget" {
		seconds, err := strconv.Atoi(fields[2])
		if err != nil || seconds < 1 {
			return fmt.Errorf("the budget of %s must be a number of CPU seconds above 0, got %q", fields[1], fields[2])
		}
		l.budgets[fields[1]] = seconds
		return nil
	}
	line := listLine{fields[0], fields[1], fields[2], number}
	if !slices.ContainsFunc(parts(), func(one part) bool { return one.name == line.part }) {
		return fmt.Errorf("unknown part %q; see testparts -help", line.part)
	}
	if _, err := regexp.Compile(line.pattern); err != nil && line.pattern != allOthers {
		return fmt.Errorf("the pattern is not a regular expression: %w", err)
	}
	l.lines = append(l.lines, line)
	return nil
}

// of returns the patterns for tests of a package in parts.
func (l *list) of(folder string, parts ...string) []string {
	var patterns []string
	for _, line := range l.lines {
		if line.folder == folder && slices.Contains(parts, line.part) {
			patterns = append(patterns, line.pattern)
		}
	}
	return patterns
}

// assigned returns the patterns for tests of a package that belong to parts other than the given ones. Additional parts do not count.
func (l *list) assigned(folder string, except []string) []string {
	var patterns []string
	for _, line := range l.lines {
		if line.folder == folder && !additional(line.part) && !slices.Contains(except, line.part) {
			patterns = append(patterns, line.pattern)
		}
	}
	return patterns
}

// findTests returns the names of the tests, examples and fuzz tests of each package, by its folder. Those of the benchmark belong to "make check".
func findTests(root fs.FS) (map[string][]string, error) {
	declaration := regexp.MustCompile(`^func ((?:Test|Example|Fuzz)\w*)\(`)
	found := map[string][]string{}
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || file == "bin" || file == "bench"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(strings.NewReader(string(text)))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if name := declaration.FindStringSubmatch(lines.Text()); name != nil && name[1] != "TestMain" {
				found[path.Dir(file)] = append(found[path.Dir(file)], name[1])
			}
		}
		return lines.Err()
	})
	return found, err
}

// checkList returns all that is wrong with the list: a line without tests, a test in two parts, and a budget that the page does not show.
func checkList(root fs.FS, of list) error {
	var wrong []error
	for _, line := range of.lines {
		if !slices.ContainsFunc(of.tests[line.folder], line.matches) {
			wrong = append(wrong, fmt.Errorf("%s:%d: %s has no test that matches %s: remove the line or correct it", listFile, line.number, line.folder, line.pattern))
		}
	}
	for _, folder := range of.folders {
		for _, test := range of.tests[folder] {
			wrong = append(wrong, checkTest(of, folder, test))
		}
	}
	page, err := fs.ReadFile(root, budgetPage)
	return errors.Join(append(wrong, err, checkBudgets(of, string(page)))...)
}

// checkTest returns an error if two lines assign a test. Lines of an additional part do not count.
func checkTest(of list, folder, test string) error {
	var first *listLine
	for _, line := range of.lines {
		if line.folder != folder || additional(line.part) || !line.matches(test) {
			continue
		}
		if first != nil {
			return fmt.Errorf("%s:%d: %s of %s is also in line %d: remove one", listFile, line.number, test, folder, first.number)
		}
		first = &line
	}
	return nil
}

// checkBudgets compares the budgets with a table, whose rows begin with "| `make PART` | CPU SECONDS |".
func checkBudgets(of list, page string) error {
	shown := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `make ([a-z-]+)` \\| ([0-9]+) \\|").FindAllStringSubmatch(page, -1) {
		shown[row[1]] = row[2]
	}
	var wrong []error
	for part, seconds := range of.budgets {
		if shown[part] != strconv.Itoa(seconds) {
			wrong = append(wrong, fmt.Errorf("%s: the budget of %s is %d CPU seconds in %s, got %q", budgetPage, part, seconds, listFile, shown[part]))
		}
	}
	for part := range shown {
		if of.budgets[part] == 0 {
			wrong = append(wrong, fmt.Errorf("%s: %s has no budget in %s", budgetPage, part, listFile))
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}
