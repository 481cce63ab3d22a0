package repo_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// modulePath is the import path that all folders of this repository hang under.
const modulePath = "github.com/einmal-operators/einmal"

// maxFileLines is the length at which a file is due to be split.
const maxFileLines = 400

// library is the folder of package einmal itself.
const library = "."

// rooms tells for each folder which folders of this repository its code may import. A folder is governed by its longest
// entry; an entry also covers everything below it, and a room may always import itself. Imports point down only.
// To add a room is to add a line here.
func rooms() map[string][]string {
	return map[string][]string{
		library: {
			"internal/cli", "internal/crd", "internal/health", "internal/logging", "internal/rbac", "internal/register", "internal/engine",
			"internal/kindloop", "internal/daemons", "internal/declaration", "internal/attempt", "internal/objects", "internal/edge", "internal/core",
		},

		"internal/cli": {
			"internal/crd", "internal/logging", "internal/rbac", "internal/uninstall", "internal/declaration", "internal/edge", "internal/core",
		},
		"internal/crd":       {},
		"internal/health":    {"internal/edge", "internal/core"},
		"internal/logging":   {"internal/core"},
		"internal/rbac":      {"internal/crd", "internal/declaration", "internal/core"},
		"internal/register":  {"internal/declaration", "internal/core"},
		"internal/uninstall": {"internal/declaration", "internal/report", "internal/edge", "internal/core"},

		"internal/core/object":    {},
		"internal/core/record":    {"internal/core/object"},
		"internal/core/redact":    {"internal/core/object"},
		"internal/core/selection": {},
		"internal/core/cause":     {"internal/core/record", "internal/core/object"},
		"internal/core/filter":    {"internal/core/object"},
		"internal/core/handler":   {"internal/core/cause", "internal/core/record", "internal/core/filter", "internal/core/object"},
		"internal/core/patch":     {"internal/core/record", "internal/core/object"},
		"internal/core/journal":   {"internal/core/cause", "internal/core/handler", "internal/core/patch", "internal/core/record", "internal/core/object"},
		"internal/core/seen":      {"internal/core/patch", "internal/core/record", "internal/core/object"},

		"internal/edge":        {"internal/core"},
		"internal/declaration": {"internal/attempt", "internal/core"},
		"internal/schemaview":  {"internal/declaration", "internal/attempt", "internal/edge", "internal/core"},
		"internal/daemons":     {"internal/schemaview", "internal/declaration", "internal/attempt", "internal/objects", "internal/report", "internal/edge", "internal/core"},
		"internal/attempt":     {"internal/objects", "internal/report", "internal/edge", "internal/core"},
		"internal/kindstore":   {"internal/objects", "internal/edge", "internal/core"},
		"internal/objects":     {"internal/core"},
		"internal/report":      {"internal/edge", "internal/core"},
		"internal/reconciler":  {"internal/daemons", "internal/kindstore", "internal/schemaview", "internal/declaration", "internal/attempt", "internal/objects", "internal/report", "internal/edge", "internal/core"},
		"internal/kindloop":    {"internal/edge", "internal/core"},
		"internal/selected":    {"internal/kindloop", "internal/reconciler", "internal/declaration", "internal/edge", "internal/core"},
		"internal/engine":      {"internal/selected", "internal/kindloop", "internal/reconciler", "internal/schemaview", "internal/declaration", "internal/kindstore", "internal/objects", "internal/report", "internal/edge", "internal/core"},
		"internal/testkit":     {"internal/engine", "internal/declaration", "internal/edge", "internal/core"},
		"credential":           {library},
		"credential/ssm":       {"credential"},
		"einmaltest":           {library, "internal/testkit", "internal/declaration", "internal/report", "internal/edge", "internal/core"},

		"test/fixture": {library, "internal/testkit", "internal/declaration", "internal/core", "einmaltest"},
		"test":         {library, "internal", "einmaltest", "test/fixture"},

		"cmd/einmal": {},
		"examples":   {library, "einmaltest"},
		"bench":      {library},
		"awslab":     {},
		"devcluster": {},
		"tools":      {},
	}
}

// operatorMay tells what an operator may import besides itself: the public packages.
func operatorMay() []string { return []string{library, "credential", "einmaltest"} }

// testsMay tells what the tests of the library's own rooms may import on top of what the room itself may.
func testsMay() []string {
	return []string{library, "internal/testkit", "internal/engine/hook", "einmaltest"}
}

// emulator is the folder that tests of what talks to AWS may import, and nothing else may.
const emulator = "awslab"

func TestArchitectureHolds(t *testing.T) {
	files, err := goFiles(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("found %d Go files: the test runs in the wrong folder", len(files))
	}
	for _, violation := range violations(files) {
		t.Error(violation)
	}
}

// goFile is what the rules need to know of one Go file.
type goFile struct {
	path    string // slash-separated, from the root of the repository
	pkg     string
	imports []string
	hasDoc  bool
	lines   int
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f goFile) isGenerated() bool { return strings.HasPrefix(path.Base(f.path), "zz_") }

// goFiles parses every Go file below the root. It reads them itself and does not ask the go command, so that the test
// cache knows of each file and a violation cannot hide behind a cached pass.
func goFiles(root fs.FS) ([]goFile, error) {
	var files []goFile
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		file, err := parse(root, name)
		if err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	return files, err
}

func skipped(folder string) bool {
	base := path.Base(folder)
	if folder == "bin" || base == "testdata" || base == "vendor" {
		return true
	}
	return folder != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"))
}

func parse(root fs.FS, name string) (goFile, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return goFile{}, err
	}
	tree, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return goFile{}, err
	}
	file := goFile{
		path:   name,
		pkg:    tree.Name.Name,
		hasDoc: tree.Doc != nil && strings.TrimSpace(tree.Doc.Text()) != "",
		lines:  bytes.Count(source, []byte("\n")),
	}
	for _, spec := range tree.Imports {
		imported, err := importPath(spec)
		if err != nil {
			return goFile{}, fmt.Errorf("%s: %w", name, err)
		}
		file.imports = append(file.imports, imported)
	}
	return file, nil
}

func importPath(spec *ast.ImportSpec) (string, error) { return strconv.Unquote(spec.Path.Value) }

// violations returns one sentence for each broken rule, in order of file names.
func violations(files []goFile) []string {
	var found []string
	documented := map[string]bool{}
	for _, file := range files {
		found = append(found, importViolations(file)...)
		if file.lines > maxFileLines && !file.isGenerated() {
			found = append(found, fmt.Sprintf("%s has %d lines; rule: no file is longer than %d", file.path, file.lines, maxFileLines))
		}
		if !file.isTest() {
			folder := path.Dir(file.path)
			documented[folder] = documented[folder] || file.hasDoc
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(documented)) {
		if !documented[folder] {
			found = append(found, fmt.Sprintf("%s has no package comment; rule: every package says what it is for", folder))
		}
	}
	return found
}

func importViolations(file goFile) []string {
	folder := path.Dir(file.path)
	room, may, ok := roomOf(folder)
	if !ok {
		return []string{fmt.Sprintf("%s lies in no known room; rule: a new folder gets a line in rooms (test/repo/architecture_test.go)", file.path)}
	}
	if file.isTest() {
		may = slices.Concat(may, testsIn(folder, file.pkg))
	}
	var found []string
	for _, imported := range file.imports {
		target, ours := folderOf(imported)
		if !ours || within(target, room) && room != library || permitted(target, may) {
			continue
		}
		found = append(found, fmt.Sprintf("%s imports %s; rule: %s may import %s", file.path, imported, name(room), list(may)))
	}
	return found
}

// testsIn returns what the tests of a package in a folder may import in addition.
func testsIn(folder, pkg string) []string {
	var may []string
	if inLibrary(folder) {
		may = testsMay()
	}
	if within(folder, "operators") || within(folder, "credential/ssm") {
		may = append(may, emulator)
	}
	if within(folder, "operators") {
		may = append(may, "internal/testkit/realnode")
	}
	if within(folder, "cmd/einmal") {
		may = append(may, "internal/testkit")
	}
	if strings.HasSuffix(pkg, "_test") && folder == library {
		may = append(may, "test/fixture")
	}
	return may
}

// roomOf returns the room that governs a folder and what that room may import.
func roomOf(folder string) (room string, may []string, ok bool) {
	if parts := strings.Split(folder, "/"); parts[0] == "operators" && len(parts) > 1 {
		return path.Join(parts[:2]...), operatorMay(), true
	}
	if folder == library {
		return library, rooms()[library], true
	}
	for candidate := folder; candidate != "."; candidate = path.Dir(candidate) {
		if may, ok := rooms()[candidate]; ok {
			return candidate, may, true
		}
	}
	return "", nil, false
}

// inLibrary reports whether a folder belongs to the library's module and not to a command or another module.
func inLibrary(folder string) bool {
	top, _, _ := strings.Cut(folder, "/")
	return !slices.Contains([]string{"operators", "awslab", "devcluster", "tools", "cmd"}, top)
}

// folderOf turns an import path into a folder of this repository; the second result is false for foreign imports.
func folderOf(imported string) (string, bool) {
	if imported == modulePath {
		return library, true
	}
	return strings.CutPrefix(imported, modulePath+"/")
}

// permitted reports whether target lies in one of the rooms; the library is its root folder alone, not what is below it.
func permitted(target string, may []string) bool {
	return slices.ContainsFunc(may, func(room string) bool {
		if room == library {
			return target == library
		}
		return within(target, room)
	})
}

func within(folder, room string) bool {
	return folder == room || strings.HasPrefix(folder, room+"/")
}

func name(room string) string {
	if room == library {
		return "package einmal"
	}
	return room
}

func list(may []string) string {
	if len(may) == 0 {
		return "nothing of ours but itself"
	}
	names := make([]string, len(may))
	for i, room := range may {
		names[i] = name(room)
	}
	return "only itself and " + strings.Join(names, ", ")
}

func TestArchitectureTestCatchesPlantedViolations(t *testing.T) {
	const doc = "// Package p is planted.\n"
	imports := func(folder string) string {
		return doc + "package p\n\nimport _ \"" + path.Join(modulePath, folder) + "\"\n"
	}
	tests := map[string]struct {
		file, source string
		want         []string
	}{
		"core must not import the engine": {
			"internal/core/object/p.go", imports("internal/engine"),
			[]string{"internal/core/object/p.go imports " + modulePath + "/internal/engine; rule: internal/core/object may import nothing of ours but itself"},
		},
		"core imports run one way": {
			"internal/core/record/p.go", imports("internal/core/cause"),
			[]string{"internal/core/record/p.go imports " + modulePath + "/internal/core/cause; rule: internal/core/record may import only itself and internal/core/object"},
		},
		"a downward import is fine": {"internal/core/cause/p.go", imports("internal/core/record"), nil},
		"nothing below imports einmal": {
			"internal/edge/invoke/p.go", imports(""),
			[]string{"internal/edge/invoke/p.go imports " + modulePath + "; rule: internal/edge may import only itself and internal/core"},
		},
		"rooms of the edge see each other": {"internal/edge/invoke/p.go", imports("internal/edge/kube"), nil},
		"the command must not reach inside": {
			"cmd/einmal/p.go", imports("internal/engine"),
			[]string{"cmd/einmal/p.go imports " + modulePath + "/internal/engine; rule: cmd/einmal may import nothing of ours but itself"},
		},
		"an operator sees public packages only": {
			"operators/volumeclaim/api/v1/p.go", imports("internal/core/object"),
			[]string{"operators/volumeclaim/api/v1/p.go imports " + modulePath + "/internal/core/object; rule: operators/volumeclaim may import only itself and package einmal, credential, einmaltest"},
		},
		"an operator sees its own packages": {"operators/volumeclaim/p.go", imports("operators/volumeclaim/api/v1"), nil},
		"an operator does not see another": {
			"operators/tenant/p.go", imports("operators/volumeclaim/api/v1"),
			[]string{"operators/tenant/p.go imports " + modulePath + "/operators/volumeclaim/api/v1; rule: operators/tenant may import only itself and package einmal, credential, einmaltest"},
		},
		"the control plane knows nothing of us": {
			"devcluster/p.go", imports(""),
			[]string{"devcluster/p.go imports " + modulePath + "; rule: devcluster may import nothing of ours but itself"},
		},
		"testkit stays out of the product": {
			"p.go", imports("internal/testkit"),
			[]string{"p.go imports " + modulePath + "/internal/testkit; rule: package einmal may import only itself and internal/cli, internal/crd, internal/health, internal/logging, internal/rbac, internal/register, internal/engine, internal/kindloop, internal/daemons, internal/declaration, internal/attempt, internal/objects, internal/edge, internal/core"},
		},
		"fixtures stay out of the product": {
			"einmaltest/p.go", imports("test/fixture"),
			[]string{"einmaltest/p.go imports " + modulePath + "/test/fixture; rule: einmaltest may import only itself and package einmal, internal/testkit, internal/declaration, internal/report, internal/edge, internal/core"},
		},
		"fixtures serve the tests": {"test/virtual/p_test.go", imports("test/fixture"), nil},
		"testkit serves the tests": {"internal/engine/p_test.go", imports("internal/testkit"), nil},
		"a new folder needs a rule": {
			"misc/p.go", doc + "package p\n",
			[]string{"misc/p.go lies in no known room; rule: a new folder gets a line in rooms (test/repo/architecture_test.go)"},
		},
		"a package needs its comment": {
			"internal/edge/p.go", "package p\n",
			[]string{"internal/edge has no package comment; rule: every package says what it is for"},
		},
		"a long file is due to be split": {
			"internal/edge/p.go", doc + "package p\n" + strings.Repeat("\n", maxFileLines),
			[]string{"internal/edge/p.go has 402 lines; rule: no file is longer than 400"},
		},
		"a long generated file is not": {"internal/edge/zz_p.go", doc + "package p\n" + strings.Repeat("\n", maxFileLines), nil},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			root := t.TempDir()
			planted := filepath.Join(root, filepath.FromSlash(test.file))
			if err := os.MkdirAll(filepath.Dir(planted), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(planted, []byte(test.source), 0o600); err != nil {
				t.Fatal(err)
			}
			files, err := goFiles(os.DirFS(root))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, violations(files)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
