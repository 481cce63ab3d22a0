package main

import (
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// cluster is a real control plane with the operator's CRD and RBAC: the tests are the users.
type cluster struct{ *einmaltest.Cluster }

func startCluster(t *testing.T) *cluster {
	t.Helper()
	ctrllog.SetLogger(logr.Discard()) // The client would complain that nobody listens.
	c := &cluster{einmaltest.StartCluster(t, v1.AddToScheme)}
	c.ApplyFolders(t, "config/crd", "config/rbac")
	return c
}

// operatorKubeconfig acts as the operator's own ServiceAccount.
func (c *cluster) operatorKubeconfig(t *testing.T) string {
	t.Helper()
	return c.ServiceAccount(t, "volumeclaim-system", "volumeclaim")
}
