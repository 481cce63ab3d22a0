package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// updateVariable makes TestCommandLines rewrite its table.
const updateVariable = "DEVCLUSTER_UPDATE"

// golden is the file with the table of TestCommandLines.
const golden = "testdata/commands.txt"

// TestCommandLines runs wrong and dangerous command lines and compares their
// output with the golden file.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a folder")
	home := ownHome(t)
	for path, content := range map[string]string{
		"foreign/thesis.txt":          "",
		"damaged/devcluster-data":     "",
		"damaged/etcd/member/snap/db": "damaged",
		"pki/devcluster-data":         "",
		"pki/pki/ca.crt":              "damaged",
		"pki/pki/ca.key":              "damaged",
		"old/devcluster-data":         "",
		"old/version":                 "v1.30.0\n",
		"new/devcluster-data":         "",
		"new/version":                 "v1.99.0\n",
	} {
		writeFile(t, filepath.Join(dir, path), content)
	}
	var table strings.Builder
	table.WriteString("Wrong and dangerous command lines of devcluster, with the lines of standard output (1>) and standard error (2>)\n" +
		"and the exit code. Written by: " + updateVariable + "=1 go test -run " + t.Name() + " ./internal/acceptance\n")
	for _, c := range wrongCommandLines() {
		r := runIn(t, dir, append(environment(), "HOME="+home), c.args...)
		c.writeTo(&table)
		writeLines(&table, "1> ", r.stdout, dir, kubernetesVersion(t))
		writeLines(&table, "2> ", r.stderr, dir, kubernetesVersion(t))
		fmt.Fprintf(&table, "exit code %d\n", r.code)
	}
	compareTable(t, table.String())
	if _, err := os.Stat(filepath.Join(dir, "foreign", "thesis.txt")); err != nil {
		t.Errorf("the file of the user: %v", err)
	}
	for _, made := range []string{"devcluster-data", ".devcluster"} {
		if _, err := os.Stat(filepath.Join(dir, made)); err == nil {
			t.Errorf("a wrong command line created %s in the current directory", made)
		}
	}
}

// commandLine is a command line of devcluster, with a note about what makes it wrong.
type commandLine struct {
	note string
	args []string
}

func wrongCommandLines() []commandLine {
	return []commandLine{
		{"", nil},
		{"", []string{"ups"}},
		{"", []string{"help", "nope"}},
		{"", []string{"help", "up", "nope"}},
		{"", []string{"up", "--colour"}},
		{"", []string{"up", "now"}},
		{"", []string{"version", "now"}},
		{"", []string{"status", "--output", "xml"}},
		{"", []string{"up", "--nodes", "-1"}},
		{"", []string{"up", "--node", "fast"}},
		{"", []string{"up", "--node=real", "--nodes", "2"}},
		{"", []string{"image"}},
		{"", []string{"image", "load"}},
		{"", []string{"image", "build"}},
		{"", []string{"image", "build", "example.org/app", "--program", "app"}},
		{"", []string{"image", "build", "example.org/App:1", "--program", "app"}},
		{"", []string{"image", "build", "app:1"}},
		{"", []string{"image", "build", "app:1", "postgresql"}},
		{"", []string{"image", "build", "app:1", "--debian", "bookworm"}},
		{"", []string{"image", "build", "app:1", "--program", "app", "--exclude", "perl"}},
		{"", []string{"image", "build", "app:1", "--add", "site"}},
		{"", []string{"image", "build", "app:1", "--program", "app", "--user", "postgres"}},
		{"", []string{"image", "build", "app:1", "--program", "app", "--env", "NAME"}},
		{"the value comes from an unset variable", []string{"image", "build", "app:1", "--program", "app", "--output", ""}},
		{"no cluster is running on the directory", []string{"image", "build", "app:1", "--program", "app", "--data", "old"}},
		{"", []string{"image", "build", "app:1", "--program", "none", "--output", "app.tar"}},
		{"", []string{"image", "build", "app:1", "--program", "foreign/thesis.txt", "--output", "app.tar"}},
		{"", []string{"image", "build", "app:1", "--add", "none:/etc", "--output", "app.tar"}},
		{"no cluster is running on the directory", []string{"image", "load", "--data", "old", "app.tar"}},
		{"the value comes from an unset variable", []string{"up", "--fresh", "--data", ""}},
		{"the value comes from an unset variable", []string{"down", "--data", ""}},
		{"", []string{"up", "--kubeconfig", "/no/dir/kc"}},
		{"the directory contains files of the user", []string{"up", "--fresh", "--data", "foreign"}},
		{"the database is damaged", []string{"up", "--data", "damaged"}},
		{"a certificate is damaged", []string{"up", "--data", "pki"}},
		{"an older version of Kubernetes wrote the data", []string{"up", "--data", "old"}},
		{"a newer version of Kubernetes wrote the data", []string{"up", "--data", "new"}},
		{"the value comes from an unset variable", []string{"kubectl", "--data", "", "delete", "namespaces", "--all"}},
		{"there is no data directory, and ~/.kube/config names another cluster", []string{"kubectl", "delete", "namespace", "production"}},
		{"there is no data directory", []string{"kubectl", "config", "set-cluster", "devcluster", "--server", "https://203.0.113.1"}},
		{"no cluster is running on the directory", []string{"kubectl", "--data", "old", "delete", "namespaces", "--all"}},
		{"the flag names another cluster", []string{"kubectl", "--kubeconfig", "production.yaml", "delete", "namespaces", "--all"}},
		{"the value comes from an unset variable", []string{"kubectl", "delete", "namespaces", "--all", "--kubeconfig="}},
		{"the flag names another cluster", []string{"kubectl", "delete", "namespaces", "--context", "production"}},
		{"the flag names another cluster", []string{"kubectl", "delete", "namespaces", "-shttps://203.0.113.1"}},
		{"a plugin could use another cluster", []string{"kubectl", "plugged"}},
	}
}

// writeTo writes the command line as a user would type it.
func (c commandLine) writeTo(table *strings.Builder) {
	table.WriteString("\n")
	if c.note != "" {
		table.WriteString("# " + c.note + "\n")
	}
	line := "devcluster"
	for _, arg := range c.args {
		if arg == "" {
			arg = `""`
		}
		line += " " + arg
	}
	table.WriteString("$ " + line + "\n")
}

// ownHome returns a home directory with a kubeconfig for a server that does not
// exist.
func ownHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	writeFile(t, filepath.Join(home, ".kube", "config"), `{apiVersion: v1, kind: Config, current-context: production,
clusters: [{name: production, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: production, context: {cluster: production, user: admin}}], users: [{name: admin}]}`)
	return home
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeLines adds the lines of an output, with placeholders for the parts that
// differ between runs.
func writeLines(table *strings.Builder, mark, text, dir, version string) {
	text = strings.NewReplacer(dir, "/DIR with space", version, "vTHIS").Replace(text)
	for line := range strings.Lines(text) {
		table.WriteString(strings.TrimRight(mark+line, " \n") + "\n")
	}
}

func compareTable(t *testing.T, got string) {
	t.Helper()
	if os.Getenv(updateVariable) != "" {
		writeFile(t, golden, got)
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run with %s=1 if the change is intended (-want +got):\n%s", golden, updateVariable, diff)
	}
}

// kubectlElsewhere runs kubectl in a directory without a cluster, for a user whose
// ~/.kube/config and KUBECONFIG name one.
func (c inCluster) kubectlElsewhere(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	home, dir := t.TempDir(), t.TempDir()
	own := filepath.Join(home, ".kube", "config")
	writeFile(t, own, string(content))
	for _, env := range [][]string{
		append(environment(), "HOME="+home),
		append(environment(), "HOME="+home, "KUBECONFIG="+own),
	} {
		for _, args := range [][]string{
			{"get", "nodes"},
			{"create", "namespace", "elsewhere"},
			{"config", "view"},
			{"exec", "pod", "--", "program", "--help"},
			{"get", "nodes", "--selector", "--help"},
		} {
			r := runIn(t, dir, env, append([]string{"kubectl"}, args...)...)
			if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, "no directory .devcluster here") {
				t.Errorf("kubectl %s without a cluster: %+v", strings.Join(args, " "), r)
			}
		}
		for _, args := range [][]string{{"get", "--help"}, {"version", "--client"}, {"completion", "bash"}, {"__complete", "rollout", ""}} {
			if r := runIn(t, dir, env, append([]string{"kubectl"}, args...)...); r.code != 0 || r.stdout == "" {
				t.Errorf("kubectl %s without a cluster: %+v", strings.Join(args, " "), r)
			}
		}
	}
	r := runIn(t, dir, environment(), "kubectl", "--data", filepath.Dir(c.kubeconfig), "get", "namespace", "elsewhere")
	if !strings.Contains(r.stderr, "NotFound") {
		t.Errorf("a namespace was created, or --data has no effect: %+v", r)
	}
}
