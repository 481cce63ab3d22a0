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

// golden is the table of TestCommandLines.
const golden = "testdata/commands.txt"

// TestCommandLines runs wrong and dangerous command lines and compares what they
// print with a table that a person can read.
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
	for _, c := range []struct {
		note string
		args []string
	}{
		{"", nil},
		{"", []string{"ups"}},
		{"", []string{"up", "--colour"}},
		{"", []string{"up", "now"}},
		{"", []string{"version", "now"}},
		{"", []string{"status", "--output", "xml"}},
		{"", []string{"up", "--nodes", "-1"}},
		{"as with an unset variable", []string{"up", "--fresh", "--data", ""}},
		{"as with an unset variable", []string{"down", "--data", ""}},
		{"", []string{"up", "--kubeconfig", "/no/dir/kc"}},
		{"the directory has files of the user", []string{"up", "--fresh", "--data", "foreign"}},
		{"the database is damaged", []string{"up", "--data", "damaged"}},
		{"a certificate is damaged", []string{"up", "--data", "pki"}},
		{"the data is that of a much older Kubernetes", []string{"up", "--data", "old"}},
		{"the data is that of a newer Kubernetes", []string{"up", "--data", "new"}},
		{"no cluster is near, and ~/.kube/config is that of another cluster", []string{"kubectl", "delete", "namespace", "production"}},
	} {
		r := runIn(t, dir, append(environment(), "HOME="+home), c.args...)
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
			t.Errorf("a wrong command line has made %s in the current directory", made)
		}
	}
}

// ownHome is a home with a kubeconfig of a cluster where nothing listens.
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

// writeLines adds the lines of an output, without what differs between runs.
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
		t.Errorf("the command lines answer otherwise than %s says (-want +got):\n%s", golden, diff)
	}
}

// kubectlElsewhere runs kubectl where no cluster is near, for a user whose own
// kubeconfig is that of a real one.
func (c inCluster) kubectlElsewhere(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	home, dir := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(home, ".kube", "config")
	if err := os.WriteFile(own, content, 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(environment(), "HOME="+home)
	for _, args := range [][]string{
		{"get", "nodes"},
		{"create", "namespace", "elsewhere"},
		{"--kubeconfig=", "get", "nodes"},
		{"config", "view"},
		{"exec", "pod", "--", "program", "--help"},
	} {
		r := runIn(t, dir, env, append([]string{"kubectl"}, args...)...)
		if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, "~/.kube/config is not used") {
			t.Errorf("kubectl %s where no cluster is near: %+v", strings.Join(args, " "), r)
		}
	}
	for _, args := range [][]string{{"get", "--help"}, {"version", "--client"}, {"--kubeconfig", own, "get", "nodes"}} {
		if r := runIn(t, dir, env, append([]string{"kubectl"}, args...)...); r.code != 0 || r.stdout == "" {
			t.Errorf("kubectl %s where no cluster is near: %+v", strings.Join(args, " "), r)
		}
	}
	if r := runIn(t, dir, append(env, "KUBECONFIG="+own), "kubectl", "get", "namespace", "elsewhere"); !strings.Contains(r.stderr, "NotFound") {
		t.Errorf("a namespace was created: %+v", r)
	}
}
