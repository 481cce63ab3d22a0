package einmal

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestTheCommandLineOfAnOperator(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", nowhere)
	for name, test := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"no command":         {nil, exitUsage, "", "print its CustomResourceDefinitions"},
		"an unknown command": {[]string{"rum"}, exitUsage, "", `unknown command "rum"`},
		"help":               {[]string{"--help"}, exitOK, "handle objects until stopped", ""},
		"version":            {[]string{"version"}, exitOK, "einmal", ""},
		"crds":               {[]string{"crds"}, exitOK, "---\nkind: One\n---\nkind: Two\n", ""},
		"run --help":         {[]string{"run", "--help"}, exitOK, "-namespace", ""},
		"an unknown flag":    {[]string{"run", "--colour"}, exitUsage, "", "colour"},
		"a bad log format":   {[]string{"run", "--log-format", "xml"}, exitUsage, "", "must be text or json"},
		"an argument":        {[]string{"run", "now"}, exitUsage, "", `unexpected argument "now"`},
		"no API server":      {[]string{"run"}, exitFailed, "", "--kubeconfig"},
		"a missing file":     {[]string{"run", "--kubeconfig", nowhere}, exitFailed, "", nowhere},
		"uninstall --help":   {[]string{"uninstall", "--help"}, exitOK, "Stop the operator first", ""},
		"uninstall what":     {[]string{"uninstall", "now"}, exitUsage, "", `unexpected argument "now"`},
		"uninstall where":    {[]string{"uninstall", "--dry-run", "--kubeconfig", nowhere}, exitFailed, "", nowhere},
		"json logs, and -v":  {[]string{"run", "--log-format=json", "-v", "--kubeconfig", nowhere}, exitFailed, "", nowhere},
		"an empty value":     {[]string{"run", "--kubeconfig", ""}, exitUsage, "", "must not be empty; leave the flag out"},
		"a bad level":        {[]string{"run", "--log-level", "loud"}, exitUsage, "", "must be debug, info, warn or error"},
	} {
		t.Run(name, func(t *testing.T) {
			op := New("op.example.com", CRDs([]byte("---\nkind: One\n"), []byte("kind: Two")))
			For[corev1.ConfigMap](op).OnCreate("x", func(context.Context, *Change[corev1.ConfigMap]) error { return nil })
			var out, failures strings.Builder
			if code := op.command(t.Context(), test.args, &out, &failures); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(out.String(), test.out) {
				t.Errorf("printed %q, want %q in it", &out, test.out)
			}
			if !strings.Contains(failures.String(), test.err) {
				t.Errorf("complained %q, want %q in it", &failures, test.err)
			}
		})
	}
}

func TestMistakesEndRunWithAMessage(t *testing.T) {
	var out, failures strings.Builder
	if code := New("op.example.com").command(t.Context(), []string{"run"}, &out, &failures); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(failures.String(), "no kinds: declare at least one") {
		t.Errorf("complained %q", &failures)
	}
	if code := New("op.example.com").command(t.Context(), []string{"crds"}, &out, &failures); code != exitFailed || !strings.Contains(failures.String(), "einmal.CRDs") {
		t.Errorf("crds without any: exit code %d, %q", code, &failures)
	}
}

// The state namespace is the one that the context of the kubeconfig names, also if that is default.
func TestTheContextOfTheKubeconfigNamesTheStateNamespace(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	for name, namespace := range map[string]string{"plain": "", "default": "default", "system": "hello-system"} {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "c", Namespace: namespace}
	}
	config.CurrentContext = "system"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"plain": "", "default": "default", "system": "hello-system", "": "hello-system"} {
		flags := connectionFlags{kubeconfig: file, context: name}
		if _, got, err := flags.config(); err != nil || got != want {
			t.Errorf("context %q: namespace %q, %v, want %q", name, got, err, want)
		}
	}
}
