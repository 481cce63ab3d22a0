package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

// apiServer answers with the namespace kube-system of a cluster, or with a code.
type apiServer struct {
	uid  atomic.Value
	code atomic.Int64
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if code := s.code.Load(); code != 0 {
		w.WriteHeader(int(code))
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":%d}`, code)
		return
	}
	_, _ = fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, s.uid.Load())
}

// A process notices that the address of its server now leads to another cluster, whatever the server's name is in the kubeconfig.
func TestAServerThatBelongsToAnotherClusterIsNoticed(t *testing.T) {
	served := &apiServer{}
	served.uid.Store("staging")
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"one": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"one": {Cluster: "one"}},
		CurrentContext: "one",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	target, err := cluster.Load(t.Context(), file, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(target.Probe(t.Context()), target.Verify(t.Context())); err != nil {
		t.Errorf("the same cluster: %v", err)
	}
	served.code.Store(http.StatusForbidden)
	if err := errors.Join(target.Probe(t.Context()), target.Verify(t.Context())); err != nil {
		t.Errorf("a server that rejects the request answers, but got %v", err)
	}
	served.code.Store(0)
	served.uid.Store("production")
	for name, check := range map[string]error{"Probe": target.Probe(t.Context()), "Verify": target.Verify(t.Context())} {
		moved, isMoved := errors.AsType[*cluster.MovedError](check)
		if !isMoved || moved.Host != server.URL || !strings.Contains(check.Error(), "remedy: restart einmal dev") {
			t.Errorf("%s: got %v, want that the server belongs to another cluster", name, check)
		}
	}
	server.Close()
	if err := target.Verify(t.Context()); err != nil {
		t.Errorf("a server that is down changes nothing, but Verify returned %v", err)
	}
	if err := target.Probe(t.Context()); err == nil {
		t.Error("Probe does not notice that the server is down")
	}
}
