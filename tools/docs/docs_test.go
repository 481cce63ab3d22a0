package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const goSource = `package p

import "fmt"

// Greet says hello.
func Greet() { fmt.Println("hello") }

type pair struct{ a, b int }

// Sum adds.
func (p *pair) Sum() int { return p.a + p.b }
`

func tree() fstest.MapFS {
	return fstest.MapFS{
		"docs/other.md": {Data: []byte("# A title\n## `Code` in a title!\n## A title\n```\n# not a title\n```\n")},
		"p.go":          {Data: []byte(goSource)},
		"claim.yaml":    {Data: []byte("kind: Claim\n")},
	}
}

func TestLinks(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"to a file":                          {"[x](docs/other.md)", nil},
		"to a folder":                        {"[x](docs)", nil},
		"to a heading":                       {"[x](docs/other.md#a-title)", nil},
		"to a heading with code":             {"[x](docs/other.md#code-in-a-title)", nil},
		"to a heading with a duplicate name": {"[x](docs/other.md#a-title-1)", nil},
		"within the page":                    {"# Here\n[x](#here)", nil},
		"to another site":                    {"[x](https://kubernetes.io/nowhere)", nil},
		"in a code span":                     {"`[x](nowhere)`", nil},
		"in a block":                         {"```\n[x](nowhere)\n```\n", nil},
		"to a missing file":                  {"[x](nowhere.md)", []string{`link "nowhere.md": no such file`}},
		"to a missing heading":               {"[x](docs/other.md#b)", []string{`link "docs/other.md#b": no such heading`}},
		"to a comment in a block":            {"[x](docs/other.md#not-a-title)", []string{`link "docs/other.md#not-a-title": no such heading`}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			pages := tree()
			pages["README.md"] = &fstest.MapFile{Data: []byte(test.text)}
			if diff := cmp.Diff(test.want, brokenLinks(pages, "README.md", test.text)); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuotations(t *testing.T) {
	page := func(marker, block string) string {
		return "before\n<!-- from " + marker + " -->\n```go\n" + block + "```\nafter\n"
	}
	tests := map[string]struct {
		marker, source string
	}{
		"a function with its comment": {"p.go: Greet", "// Greet says hello.\nfunc Greet() { fmt.Println(\"hello\") }\n"},
		"a method":                    {"p.go: pair.Sum", "// Sum adds.\nfunc (p *pair) Sum() int { return p.a + p.b }\n"},
		"several declarations":        {"p.go: imports, pair", "import \"fmt\"\n\ntype pair struct{ a, b int }\n"},
		"a whole file":                {"claim.yaml", "kind: Claim\n"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			fresh := page(test.marker, test.source)
			if _, stale := quote(tree(), fresh); len(stale) > 0 {
				t.Errorf("an up-to-date quotation was reported: %v", stale)
			}
			updated, stale := quote(tree(), page(test.marker, "old\n"))
			if len(stale) != 1 || !strings.Contains(stale[0], "differs from its source") {
				t.Errorf("an outdated quotation was reported as %q", stale)
			}
			if diff := cmp.Diff(fresh, updated); diff != "" {
				t.Errorf("updated page (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidQuotations(t *testing.T) {
	tests := map[string]struct {
		text, want string
	}{
		"no such file":        {"<!-- from q.go: Greet -->\n```go\n```\n", "quotation of q.go: open q.go: file does not exist"},
		"no such declaration": {"<!-- from p.go: Part -->\n```go\n```\n", `quotation of p.go: no declaration "Part"`},
		"no block":            {"<!-- from p.go: Greet -->\ntext\n", "quotation of p.go: no fenced block follows"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			updated, stale := quote(tree(), test.text)
			if diff := cmp.Diff([]string{test.want}, stale); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.text, updated); diff != "" {
				t.Errorf("the page changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLanguage(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"plain":           {"// Greet says hello. It reports whether it did. It uses http.NoBody.\n", nil},
		"a riddle":        {"one\nThis is nobody's.", []string{`line 2: "nobody": name the actor: say who does it`}},
		"in a name":       {"func TestNobodyAsks()", []string{`line 1: "Nobody": name the actor: say who does it`}},
		"again":           {"make it anew", []string{`line 1: "anew": write again`}},
		"a new":           {"func TestANewKind()", nil},
		"passive":         {"The user is told.", []string{`line 1: "is told": name the actor: say who does it`}},
		"bool":            {"It tells whether", []string{`line 1: "tells whether": write reports whether`}},
		"a lack":          {"for want of room", []string{`line 1: "for want of": write without, or because … is missing`}},
		"a section":       {"see §4", []string{`line 1: "§": cite a file of this repository or a public URL`}},
		"an issue":        {"see issue 12", []string{`line 1: "issue 12": cite a file of this repository or a public URL`}},
		"a name of Redis": {`const probe = "einmal:nobody"`, nil},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plainness(test.text)); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCitations(t *testing.T) {
	pages := tree()
	pages["docs/decisions/0001-first.md"] = &fstest.MapFile{Data: []byte("# First\n")}
	tests := map[string]struct {
		file, text string
		want       []string
	}{
		"a document":              {"p.go", "// See docs/other.md.", nil},
		"beside the file":         {"docs/q.go", "// See other.md.", nil},
		"a document elsewhere":    {"p.go", "// See https://example.com/a/missing.md.", nil},
		"a missing document":      {"p.go", "// See design/design.md.", []string{"line 1: design/design.md: no such document"}},
		"a decision":              {"p.go", "// See docs/decisions/0001.", nil},
		"a missing decision":      {"p.go", "\n// See docs/decisions/0002.", []string{"line 2: docs/decisions/0002: no such decision"}},
		"a page, checked as such": {"README.md", "missing.md", nil},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(test.want, missingCitations(pages, test.file, test.text)); diff != "" {
				t.Errorf("complaints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyReadableFilesAreChecked(t *testing.T) {
	pages := fstest.MapFS{}
	for _, name := range []string{"a.go", "Makefile", "b/testdata/c.txtar", ".git/x.md", "bin/y.go", "tools/docs/z.go", "d.bin"} {
		pages[name] = &fstest.MapFile{Data: []byte("x")}
	}
	found, err := readableFiles(pages)
	if diff := cmp.Diff([]string{"Makefile", "a.go", "b/testdata/c.txtar"}, found); err != nil || diff != "" {
		t.Errorf("files (-want +got), %v:\n%s", err, diff)
	}
}
