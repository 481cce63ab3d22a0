package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/source"
)

func newSpawner(t *testing.T) *process.Spawner {
	t.Helper()
	spawner, err := process.NewSpawner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spawner.Close() })
	return spawner
}

// workspace writes two modules, one of which the other replaces by its directory, and returns their root.
func workspace(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{
		"op/go.mod": "module example.com/op\ngo 1.24\nrequire example.com/lib v0.0.0\n" +
			"replace example.com/lib => ../lib\n",
		"op/cmd/operator/main.go": "package main\n\nimport (\n\t_ \"embed\"\n\n\t\"example.com/lib/deep/word\"\n" +
			"\t\"example.com/op/internal/part\"\n)\n\n//go:embed static/page.txt\nvar page string\n\n" +
			"func main() { println(page, word.Word, part.Part) }\n",
		"op/cmd/operator/static/page.txt":       "page",
		"op/cmd/operator/config/rbac/role.yaml": "",
		"op/internal/part/part.go":              "package part\n\nconst Part = \"part\"\n",
		"op/internal/unused/unused.go":          "package unused\n",
		"lib/go.mod":                            "module example.com/lib\ngo 1.24\n",
		"lib/deep/word/word.go":                 "package word\n\nconst Word = \"word\"\n",
	})
	return root
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInspectFindsTheSourceFiles(t *testing.T) {
	t.Setenv("GOWORK", "off")
	root := workspace(t)
	tree, err := source.Inspect(t.Context(), newSpawner(t), root+"/op/cmd/operator")
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, dir := range tree.Dirs() {
		dirs = append(dirs, strings.TrimPrefix(dir, root+"/"))
	}
	want := []string{
		"lib", "lib/deep", "lib/deep/word", "op", "op/cmd", "op/cmd/operator", "op/cmd/operator/config",
		"op/cmd/operator/config/rbac", "op/cmd/operator/static", "op/internal", "op/internal/part",
	}
	if diff := cmp.Diff(want, dirs); diff != "" {
		t.Errorf("directories to watch (-want +got):\n%s", diff)
	}
	if err := os.Mkdir(root+"/op/internal/missing", 0o755); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][2]bool{ // Contains, MayFixBuild
		"op/cmd/operator/main.go":              {true, true},
		"op/cmd/operator/new.go":               {true, true},
		"op/cmd/operator/main_test.go":         {false, false},
		"op/cmd/operator/.main.go.swp":         {false, false},
		"op/cmd/operator/main.go~":             {false, false},
		"op/cmd/operator/4913":                 {false, false},
		"op/cmd/operator/notes.txt":            {false, false},
		"op/cmd/operator/static/page.txt":      {true, true},
		"op/cmd/operator/config/rbac/new.yaml": {true, true},
		"op/internal/part/part.go":             {true, true},
		"op/internal/unused/unused.go":         {false, true},
		"op/internal/missing":                  {false, true},
		"op/log":                               {false, false},
		"op/go.mod":                            {true, true},
		"lib/go.mod":                           {true, true},
		"lib/deep/word/word.go":                {true, true},
	} {
		got := [2]bool{tree.Contains(root + "/" + file), tree.MayFixBuild(root + "/" + file)}
		if got != want {
			t.Errorf("%s: Contains and MayFixBuild are %v, want %v", file, got, want)
		}
	}
}

func TestInspectAcceptsSourcesThatDoNotCompile(t *testing.T) {
	t.Setenv("GOWORK", "off")
	root := workspace(t)
	for name, text := range map[string]string{
		"syntax":          "package main\nfunc main() {\n",
		"missing package": "package main\n\nimport \"example.com/op/none\"\n\nfunc main() { none.Run() }\n",
		"no clause":       "pckage main\n",
	} {
		write(t, root, map[string]string{"op/cmd/operator/main.go": text})
		tree, err := source.Inspect(t.Context(), newSpawner(t), root+"/op/cmd/operator")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !tree.Contains(root + "/op/cmd/operator/main.go") {
			t.Errorf("%s: the broken file is not contained", name)
		}
	}
}

func TestInspectRejectsDirectoriesWithoutAProgram(t *testing.T) {
	t.Setenv("GOWORK", "off")
	root := workspace(t)
	write(t, root, map[string]string{"op/tests/x_test.go": "package tests\n", "outside/main.go": "package main\n"})
	for dir, want := range map[string]string{
		"op":               "no Go files in",
		"op/tests":         "find the Go package in",
		"op/internal/part": `must be main, got "part"`,
		"op/none":          "no such file or directory",
		"op/go.mod":        "is not a directory",
		"outside":          "go.mod",
	} {
		_, err := source.Inspect(t.Context(), newSpawner(t), filepath.Join(root, dir))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not contain %q", dir, err, want)
		}
	}
}

func TestFailedBuildPrintsErrorsAndKeepsTheOldProgram(t *testing.T) {
	t.Setenv("GOWORK", "off")
	root := workspace(t)
	dir, binary := root+"/op/cmd/operator", root+"/operator"
	var screen strings.Builder
	if ok, err := source.Build(t.Context(), newSpawner(t), dir, binary, &screen); err != nil || !ok {
		t.Fatalf("built %v, error %v:\n%s", ok, err, screen.String())
	}
	before, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := source.Build(t.Context(), newSpawner(t), dir, binary, &screen); err != nil || !ok {
		t.Fatalf("built %v without a change, error %v:\n%s", ok, err, screen.String())
	}
	if again, err := os.Stat(binary); err != nil || !os.SameFile(before, again) {
		t.Errorf("the program was linked again without a change (error %v)", err)
	}
	write(t, root, map[string]string{"op/internal/part/part.go": "package part\n\nconst Part = nonsense\n"})
	ok, err := source.Build(t.Context(), newSpawner(t), dir, binary, &screen)
	if err != nil || ok || !strings.Contains(screen.String(), "undefined: nonsense") {
		t.Errorf("built %v, error %v, screen %q", ok, err, screen.String())
	}
	after, err := os.Stat(binary)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the old program was replaced (error %v)", err)
	}
	write(t, root, map[string]string{"op/internal/part/part.go": "package part\n\nconst Part = \"other\"\n"})
	ok, err = source.Build(t.Context(), newSpawner(t), dir, binary, &screen)
	changed, _ := os.Stat(binary)
	if err != nil || !ok || os.SameFile(before, changed) {
		t.Errorf("the changed program did not replace the old one: built %v, error %v", ok, err)
	}
}
