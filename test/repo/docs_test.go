package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each verb and each option has a worked example, which is quoted from a program that is compiled and tested.
func TestThePageOfHandlersShowsEveryVerbAndOption(t *testing.T) {
	page, err := os.ReadFile("docs/reference/handlers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range verbsAndOptions(t) {
		if used := regexp.MustCompile(`\.` + name + `[(\[]`); !used.Match(page) {
			t.Errorf("%s is not used on the page: add it to examples/team, and quote it", name)
		}
	}
}

// verbsAndOptions are the exported functions of the package that declare a handler, are an option or part of one, or are
// for use in a handler; and the methods of kinds, of changes and of an operator's activities.
func verbsAndOptions(t *testing.T) []string {
	t.Helper()
	notTests := func(info fs.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }
	packages, err := parser.ParseDir(token.NewFileSet(), ".", notTests, 0) //nolint:staticcheck // No types are needed.
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range packages["einmal"].Files {
		for _, declared := range file.Decls {
			if function, is := declared.(*ast.FuncDecl); is && function.Name.IsExported() && speaks(function) {
				names = append(names, function.Name.Name)
			}
		}
	}
	if len(names) < 40 {
		t.Fatalf("only %d were found: %v", len(names), names)
	}
	return names
}

// speaks reports whether handlers are declared with a function, or use it.
func speaks(function *ast.FuncDecl) bool {
	var types []string
	if function.Recv != nil {
		of := typeName(function.Recv.List[0].Type)
		return of == "Kind" || of == "Change" || of == "Operator" && strings.HasPrefix(function.Name.Name, "On")
	}
	for _, field := range function.Type.Params.List {
		types = append(types, typeName(field.Type))
	}
	if results := function.Type.Results; results != nil {
		types = append(types, typeName(results.List[0].Type))
	}
	return slices.ContainsFunc(types, func(name string) bool {
		return strings.HasSuffix(name, "Option") || slices.Contains([]string{"Kind", "Change", "Filter", "Match", "Transition", "Recovery"}, name)
	})
}

// typeName is the name of a type without what it is a pointer to, or is made of.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.IndexExpr:
		return typeName(of.X)
	case *ast.IndexListExpr:
		return typeName(of.X)
	case *ast.Ident:
		return of.Name
	default:
		return ""
	}
}
