package mutants_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mutantVariable names the mutant that is switched on in a build with mutants.
const mutantVariable = "EINMAL_MUTANT"

func killMutant(t *testing.T, program string, bug mutant) {
	t.Helper()
	started := time.Now()
	printed, err := runMutant(t, program, bug)
	if err == nil {
		t.Fatalf("%s does not catch this mutant", bug.test)
	}
	t.Logf("killed by %s in %s", bug.test, time.Since(started).Round(time.Millisecond))
	if _, finding, found := strings.Cut(printed, "when this goes wrong: "); found {
		t.Logf("found when this goes wrong: %s", finding)
	}
	if !strings.Contains(printed, bug.says) {
		t.Errorf("%s fails without saying %q:\n%s", bug.test, bug.says, printed)
	}
}

// runMutant runs the mutant's test with the mutant switched on; a mutant without a name switches none on.
func runMutant(t *testing.T, program string, bug mutant) (printed string, err error) {
	t.Helper()
	pattern := "^" + strings.ReplaceAll(bug.test, "/", "$/^") + "$"
	run := exec.CommandContext(t.Context(), program, "-test.run", pattern, "-test.timeout", "10m")
	run.Dir = bug.in
	run.Env = append(os.Environ(), mutantVariable+"="+bug.name, "EINMALTEST_QUICK=1", "EINMALTEST_SEED=1") // As in "make explore-quick".
	output, err := run.CombinedOutput()
	if strings.Contains(string(output), "no tests to run") {
		t.Fatalf("%s has no test %s", bug.in, bug.test)
	}
	return string(output), err
}

// buildMutants compiles the tests of each package that kills a mutant, with all mutants in, and returns the programs by folder.
func buildMutants(t *testing.T) map[string]string {
	t.Helper()
	folder, programs := t.TempDir(), map[string]string{}
	list := filepath.Join(folder, "overlay.json")
	overlay, err := json.Marshal(map[string]any{"Replace": writeMutants(t, folder)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bug := range mutants() {
		if programs[bug.in] != "" {
			continue
		}
		program := filepath.Join(folder, "tests"+strconv.Itoa(len(programs)))
		build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", list, "-o", program, "./"+bug.in)
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the tests of %s with mutants: %v\n%s", bug.in, err, output)
		}
		programs[bug.in] = program
	}
	return programs
}

// writeMutants writes the changed source files and the functions that they need, and returns where each original is replaced.
func writeMutants(t *testing.T, folder string) map[string]string {
	t.Helper()
	replaced := map[string]string{}
	write := func(path, text string) {
		original, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		replaced[original] = filepath.Join(folder, strconv.Itoa(len(replaced))+"_"+filepath.Base(path))
		if err := os.WriteFile(replaced[original], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages := map[string]string{}
	for path, text := range mutatedFiles(t) {
		write(path, text)
		packages[packageOf(text)] = filepath.Dir(path)
	}
	for name, dir := range packages {
		write(filepath.Join(dir, "mutated.go"), "package "+name+"\n\nimport \"os\"\n\n"+
			"func mutated(name string) bool { return os.Getenv(\""+mutantVariable+"\") == name }\n")
	}
	helpers, err := filepath.Glob("test/mutants/testdata/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, helper := range helpers {
		text := readFile(t, helper)
		write(filepath.Join(packages[packageOf(text)], "mutants_"+filepath.Base(helper)), text)
	}
	return replaced
}

// packageOf returns the package of a source file. Mutated packages have different names.
func packageOf(source string) string {
	return regexp.MustCompile(`(?m)^package (\w+)`).FindStringSubmatch(source)[1]
}

// mutatedFiles returns the source files of the library that carry markers, by path, with the mutants in.
func mutatedFiles(t *testing.T) map[string]string {
	t.Helper()
	missing := map[string]mutant{}
	for _, bug := range mutants() {
		missing[bug.name] = bug
	}
	marked := regexp.MustCompile(`(?m)^(.*\S)\s*// mutant: (\S+)$`)
	texts := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "_test.go") || filepath.Ext(path) != ".go" {
			if err != nil {
				return err
			}
			return skipMutants(path, entry)
		}
		source := readFile(t, path)
		text := marked.ReplaceAllStringFunc(source, func(line string) string {
			parts := marked.FindStringSubmatch(line)
			bug, found := missing[parts[2]]
			if !found {
				t.Errorf("%s: the marker of mutant %q has no row in a table of mutants, or stands twice", path, parts[2])
			}
			delete(missing, parts[2])
			return strings.NewReplacer("LINE", parts[1], "MUTATED", "mutated("+strconv.Quote(bug.name)+")").Replace(bug.changed)
		})
		if text != source {
			texts[path] = text
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range missing {
		t.Errorf("no line carries the marker // mutant: %s; put it where the promise is kept now", name)
	}
	return texts
}

// skipMutants leaves out folders that hold no source of the library.
func skipMutants(path string, entry fs.DirEntry) error {
	if entry.IsDir() && (filepath.Base(path) == "testdata" || path == "bin" || path == "operators" || path == "devcluster" ||
		strings.HasPrefix(path, ".") && path != ".") {
		return filepath.SkipDir
	}
	return nil
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
