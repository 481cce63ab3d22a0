package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

func object(kind, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s}\n", kind, name)
}

func describe(objects []manifest.Object) []string {
	var lines []string
	for _, o := range objects {
		lines = append(lines, fmt.Sprintf("%s @ %s", o.Name(), o.Origin))
	}
	return lines
}

func TestParseSplitsDocuments(t *testing.T) {
	text := "# a licence\n---\n" + object("A", "one") +
		"--- # the second\n" + object("B", "two") +
		"---\n\n---\r\n" + object("C", "three") +
		"--- {apiVersion: v1, kind: D, metadata: {name: four, namespace: ns}}\n" +
		"---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: E, metadata: {name: five}}\n" +
		"- {apiVersion: v1, kind: F, metadata: {name: six}}\n" +
		"---\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n---\n" +
		"apiVersion: v1\nkind: G\nmetadata: {name: seven}\ndata: {text: \"---\"}\n"
	objects, err := manifest.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"A one @ x.yaml, document 1 (line 3)",
		"B two @ x.yaml, document 2 (line 7)",
		"C three @ x.yaml, document 3 (line 13)",
		"D ns/four @ x.yaml, document 4 (line 16)",
		"E five @ x.yaml, document 5 (line 18)",
		"F six @ x.yaml, document 5 (line 18)",
		"G seven @ x.yaml, document 7 (line 27)",
	}
	if diff := cmp.Diff(want, describe(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestParseErrorsNameFileDocumentAndCause(t *testing.T) {
	good := object("A", "one") + "---\n"
	for text, want := range map[string][]string{
		"kind: B\nmetadata: {name: x}\n":     {"x.yaml, document 2 (line 5)", "B x has no apiVersion"},
		"apiVersion: v1\nkind: B\n":          {"x.yaml, document 2", "B has no metadata.name"},
		"apiVersion: v1\n":                   {"document 2", "apiVersion and kind are required"},
		"just words\n":                       {"document 2", "apiVersion and kind are required"},
		"kind: B\nkind: C\napiVersion: v1\n": {"document 2", `key "kind" already set`},
		"a: [\n":                             {"document 2", "parse as YAML"},
	} {
		_, err := manifest.Parse("x.yaml", []byte(good+text))
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: error %v does not contain %q", text, err, part)
			}
		}
	}
}

func TestLoadReadsAFileADirectoryAndStandardInput(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yml": object("B", "b"), "a.yaml": object("A", "a"), "c.json": `{"apiVersion":"v1","kind":"C","metadata":{"name":"c"}}`,
		"kustomization.yaml": "resources: [a.yaml]\n", ".hidden.yaml": "x", "notes.txt": "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{
		dir:                         {"A a", "B b", "C c"},
		filepath.Join(dir, "b.yml"): {"B b"},
		"-":                         {"D d"},
	} {
		objects, err := manifest.Load(path, strings.NewReader(object("D", "d")))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range objects {
			names = append(names, o.Name())
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestLoadRequiresObjects(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir: "contains no Kubernetes objects", dir + "/none": "no such file",
		"-": "standard input contains no",
	} {
		if _, err := manifest.Load(path, strings.NewReader("# nothing\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not contain %q", path, err, want)
		}
	}
}

func TestSortPutsDependenciesFirst(t *testing.T) {
	var text strings.Builder
	for _, kind := range []string{
		"Pod", "RoleBinding", "Role", "ClusterRoleBinding", "Zebra", "ServiceAccount",
		"CustomResourceDefinition", "ClusterRole", "Namespace",
	} {
		text.WriteString("---\n" + object(kind, "x"))
	}
	objects, err := manifest.Parse("x", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	manifest.Sort(objects)
	var kinds []string
	for _, o := range objects {
		kinds = append(kinds, o.GetKind())
	}
	want := []string{
		"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding",
		"Role", "RoleBinding", "Pod", "Zebra",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
