package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// exportedKinds are the kinds of the objects of a Database, in the order in which tools for backups restore them.
const exportedKinds = "persistentvolumeclaims,secrets,configmaps,services,networkpolicies,poddisruptionbudgets,cronjobs,statefulsets,databases"

// A namespace is deleted, and restored as tools for backups do it: each object gets a new uid and loses its owner references, and the volumes have their data.
// The status has one command. It makes the database ready, with its data and its password.
func TestNodeTakesBackARestoredNamespace(t *testing.T) {
	s := &started{realnode.Start(t, script, ready)}
	s.connect(t, "16")
	s.awaitServers(t, "Ready Streaming")
	password := s.password(t)
	objects := s.export(t)
	volumes := strings.Fields(s.MustKubectl(t, "get", "persistentvolumes", "--output", "jsonpath={.items[*].metadata.name}"))
	s.patchEach(t, volumes, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
	s.MustKubectl(t, "delete", "namespace", "production", "--timeout=5m")
	s.patchEach(t, volumes, `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)
	s.MustKubectl(t, "create", "namespace", "production")
	s.restore(t, objects)

	s.awaitReason(t, "orders-db", "ObjectRefused")
	s.obey(t, "annotate ")
	s.awaitReason(t, "orders-db", "DatabaseReady")
	s.awaitServers(t, "Ready Streaming")
	s.inServer(t, 0, "select n, by from kept", "42|app")
	s.inServer(t, 1, "select n, by from kept", "42|app")
	if now := s.password(t); now != password {
		t.Error("the password is another one")
	}
	s.follows(t)
	owner := s.uid(t, "database", "orders-db")
	for _, child := range []string{"statefulset/orders-db", "service/orders-db-rw", "configmap/orders-db-config", "cronjob/orders-db-backup"} {
		kind, name, _ := strings.Cut(child, "/")
		s.await(t, kind, name, ".metadata.ownerReferences[0].uid", owner)
	}
}

// patchEach patches volumes.
func (s *started) patchEach(t *testing.T, volumes []string, patch string) {
	t.Helper()
	for _, volume := range volumes {
		s.MustKubectl(t, "patch", "persistentvolume", volume, "--type", "merge", "--patch", patch)
	}
}

// export returns the objects of the namespace without what a new cluster gives them, and without the status.
func (s *started) export(t *testing.T) string {
	t.Helper()
	var list struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Items      []map[string]any `json:"items"`
	}
	einmaltest.Eventually(t, "objects of the namespace are read", func(ctx context.Context) error {
		text, err := s.Kubectl(ctx, "get", exportedKinds, "--namespace", "production", "--output", "json")
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(text), &list)
	})
	for _, one := range list.Items {
		delete(one, "status")
		metadata := one["metadata"].(map[string]any)
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "ownerReferences", "managedFields", "finalizers"} {
			delete(metadata, field)
		}
		if annotations, has := metadata["annotations"].(map[string]any); has { // A claim must be bound again.
			maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, "pv.kubernetes.io/") })
		}
	}
	list.Items = slices.DeleteFunc(list.Items, func(one map[string]any) bool {
		return fmt.Sprint(one["metadata"].(map[string]any)["name"]) == "kube-root-ca.crt"
	})
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
