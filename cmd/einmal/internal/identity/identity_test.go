package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

func accounts(t *testing.T, names ...string) []manifest.Object {
	t.Helper()
	text := "apiVersion: v1\nkind: Namespace\nmetadata: {name: system}\n"
	for _, name := range names {
		namespace, name, _ := strings.Cut(name, "/")
		text += fmt.Sprintf("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %q, namespace: %q}\n", name, namespace)
	}
	objects, err := manifest.Parse("rbac.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestTheOnlyServiceAccountIsChosen(t *testing.T) {
	for name, c := range map[string]struct {
		objects []manifest.Object
		wanted  string
		want    Account
	}{
		"the only one":            {accounts(t, "system/operator"), "", Account{"system", "operator"}},
		"without a namespace":     {accounts(t, "/operator"), "", Account{"fallback", "operator"}},
		"the wanted one of many":  {accounts(t, "a/x", "b/y"), "b/y", Account{"b", "y"}},
		"a wanted one not listed": {accounts(t), "c/z", Account{"c", "z"}},
	} {
		got, err := Choose(c.objects, c.wanted, "fallback")
		if err != nil || got != c.want {
			t.Errorf("%s: %v, error %v, want %v", name, got, err, c.want)
		}
	}
}

func TestAmbiguousChoiceListsTheAccounts(t *testing.T) {
	for _, c := range []struct {
		objects []manifest.Object
		wanted  string
		want    []string
	}{
		{accounts(t), "", []string{"none found", "--service-account"}},
		{accounts(t, "a/x", "b/y"), "", []string{"2 found", "a/x in rbac.yaml, document 2", "b/y", "--service-account"}},
		{accounts(t, "a/x"), "x", []string{"NAMESPACE/NAME", `"x"`}},
		{accounts(t, "a/x"), "a/b/c", []string{"NAMESPACE/NAME", `"a/b/c"`}},
	} {
		_, err := Choose(c.objects, c.wanted, "default")
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %v does not contain %q", err, part)
			}
		}
	}
}

// tokenServer serves the TokenRequests of system/operator and returns the access to it. Each token is a new one.
func tokenServer(t *testing.T) *rest.Config {
	t.Helper()
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/api/v1/namespaces/system/serviceaccounts/operator/token" {
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "code": 404, "reason": "NotFound"})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
			"status": map[string]any{"token": fmt.Sprintf("token-%d", count.Add(1))},
		})
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.ContentType = "application/json"
	return config
}

func TestWriteTokenReplacesTheFileWithMode0600(t *testing.T) {
	config, file := tokenServer(t), filepath.Join(t.TempDir(), "token")
	for i := 1; i <= 2; i++ {
		if err := WriteToken(t.Context(), config, Account{"system", "operator"}, file); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("token-%d", i); string(data) != want {
			t.Errorf("token %q, want %q", data, want)
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) != 1 {
		t.Errorf("%d files left, want only the token", len(entries))
	}
}

func TestWriteTokenNamesAMissingAccount(t *testing.T) {
	err := WriteToken(t.Context(), tokenServer(t), Account{"system", "missing"}, filepath.Join(t.TempDir(), "t"))
	if err == nil || !strings.Contains(err.Error(), "no ServiceAccount system/missing") || !apierrors.IsNotFound(errors.Unwrap(err)) {
		t.Errorf("error %v does not name the account or does not wrap the cause", err)
	}
}

func TestOperatorKubeconfigHasNoOtherUser(t *testing.T) {
	admin := &rest.Config{Host: "https://127.0.0.1:6443", BearerToken: "admin-token"}
	admin.CAData, admin.ServerName, admin.KeyData = []byte("ca"), "kubernetes", []byte("secret")
	dir := t.TempDir()
	file, token := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "token")
	if err := WriteKubeconfig(file, admin, Account{"system", "operator"}, token); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the kubeconfig: %v, error %v", info.Mode(), err)
	}
	if err := os.WriteFile(token, []byte("operator-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"host": config.Host, "token file": config.BearerTokenFile, "ca": string(config.CAData),
		"server name": config.ServerName, "key": string(config.KeyData), "certificate": string(config.CertData),
	}
	want := map[string]string{
		"host": "https://127.0.0.1:6443", "token file": token, "ca": "ca",
		"server name": "kubernetes", "key": "", "certificate": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("access (-want +got):\n%s", diff)
	}
	text, _ := os.ReadFile(file)
	if strings.Contains(string(text), "admin") {
		t.Errorf("the kubeconfig has the token of the admin:\n%s", text)
	}
}
