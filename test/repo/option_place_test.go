package repo_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// optionCalls is a package of the testdata with a call of every option.
const optionCalls = "test/repo/testdata/options/options.go"

// optionPage is the page with the table of options and places.
const optionPage = "docs/reference/options.md"

// optionPlaces are the places where options are given, by the type of the parameter there.
func optionPlaces() []string {
	return []string{"Operator", "Kind", "Create", "Update", "Delete", "Resume", "Event", "Reconcile", "Timer", "Daemon", "Index", "Apply"}
}

// placeNames are the headings of the table.
func placeNames() []string {
	return []string{"New", "For, Owns, Prunes, Watches", "OnCreate", "OnUpdate, OnField", "OnDelete", "OnResume", "OnEvent", "Reconcile", "Timer", "Daemon", "Index", "Apply"}
}

// runRefuses are the places that the compiler allows and Run refuses.
func runRefuses() map[string][]string {
	return map[string][]string{
		"AttemptTimeout": {"Daemon"},
		"FieldMatches":   {"Delete", "Event"},
	}
}

// The compiler refuses an option in the wrong place: the table of options and places is on a page, and is made by type-checking a call of
// every option. A new option without a call fails the test.
func TestTheTableOfOptionsAndPlacesIsTrue(t *testing.T) {
	library, calls := checkedOptions(t)
	var table bytes.Buffer
	fmt.Fprintf(&table, "| option | %s |\n|---%s|\n", strings.Join(placeNames(), " | "), strings.Repeat("|---", len(placeNames())))
	for _, name := range slices.Sorted(mapKeys(calls)) {
		row := []string{"`" + name + "`"}
		for _, place := range optionPlaces() {
			wanted, _ := library.Scope().Lookup(place + "Option").Type().Underlying().(*types.Interface)
			switch {
			case !types.Implements(calls[name], wanted):
				row = append(row, "")
			case slices.Contains(runRefuses()[name], place):
				row = append(row, "error of Run")
			default:
				row = append(row, "yes")
			}
		}
		fmt.Fprintf(&table, "| %s |\n", strings.Join(row, " | "))
	}
	page, err := os.ReadFile(optionPage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(page, table.Bytes()) {
		t.Errorf("%s does not have the table as it is:\n%s", optionPage, &table)
	}
	for _, name := range optionConstructors(library) {
		if _, ok := calls[name]; !ok {
			t.Errorf("%s has no call of %s", optionCalls, name)
		}
	}
}

func mapKeys[V any](of map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range of {
			if !yield(key) {
				return
			}
		}
	}
}

// checkedOptions type-checks the calls. It returns package einmal, and the type of each call by the name of the option.
func checkedOptions(t *testing.T) (*types.Package, map[string]types.Type) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, optionCalls, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(files, "gc", exportData(t))}
	checked, err := config.Check("options", files, []*ast.File{file}, info)
	if err != nil {
		t.Fatal(err)
	}
	var library *types.Package
	for _, imported := range checked.Imports() {
		if imported.Name() == "einmal" {
			library = imported
		}
	}
	calls := map[string]types.Type{}
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		function := call.Fun
		if generic, ok := function.(*ast.IndexExpr); ok {
			function = generic.X
		}
		if selector, ok := function.(*ast.SelectorExpr); ok && isOption(info.Types[call].Type) {
			calls[selector.Sel.Name] = info.Types[call].Type
		}
		return true
	})
	return library, calls
}

// isOption reports whether a type is that of an option.
func isOption(of types.Type) bool {
	named, ok := of.(*types.Named)
	return ok && (strings.HasSuffix(named.Obj().Name(), "Option") || named.Obj().Name() == "Filter")
}

// optionConstructors are the functions of package einmal that return an option.
func optionConstructors(library *types.Package) []string {
	var names []string
	for _, name := range library.Scope().Names() {
		function, ok := library.Scope().Lookup(name).(*types.Func)
		if !ok || !function.Exported() {
			continue
		}
		results := function.Signature().Results()
		if results.Len() == 1 && isOption(results.At(0).Type()) {
			names = append(names, name)
		}
	}
	return names
}

// exportData finds the compiled form of a package and of all that it imports.
func exportData(t *testing.T) importer.Lookup {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", "./"+strings.TrimSuffix(optionCalls, "/options.go"))
	list.Stderr = os.Stderr
	printed, err := list.Output()
	if err != nil {
		t.Fatalf("find compiled packages: %v", err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(printed)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		compiled[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) }
}
