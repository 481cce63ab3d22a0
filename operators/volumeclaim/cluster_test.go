package main

import (
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// TestMain silences the libraries' own logs; otherwise controller-runtime warns about a missing logger. With a command as its first argument,
// the test binary acts as the operator.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	ctrllog.SetLogger(logr.Discard())
	m.Run()
}

// cluster is a real control plane with the operator's CRD and RBAC: the tests are the users.
type cluster struct{ *einmaltest.Cluster }

// sharedCluster has no claims and no volumes when the test begins and ends. The tests that use it run one after the other, since they use the
// same CRD and the same namespace.
func sharedCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{einmaltest.SharedCluster(t, v1.AddToScheme)}
	c.ApplyFolders(t, "config/crd", "config/rbac")
	c.DeleteAllAtEnd(t, &corev1.PersistentVolumeClaimList{}, client.InNamespace("default"))
	c.DeleteAllAtEnd(t, &v1.EphemeralVolumeClaimList{}, client.InNamespace("default")) // First, as cleanups run in reverse order.
	return c
}

// self returns the path of this test binary. TestMain makes it act as the operator, which saves linking the operator.
func self(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// operatorKubeconfig acts as the operator's own ServiceAccount.
func (c *cluster) operatorKubeconfig(t *testing.T) string {
	t.Helper()
	return c.ServiceAccount(t, "volumeclaim-system", "volumeclaim")
}

func (c *cluster) create(t *testing.T, name, size string) {
	t.Helper()
	claim := &v1.EphemeralVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1.EphemeralVolumeClaimSpec{Size: resource.MustParse(size)},
	}
	if err := c.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// patch changes the claim of the sample.
func (c *cluster) patch(t *testing.T, merge string) {
	t.Helper()
	if err := c.Patch(t.Context(), c.claim(t, "my-claim"), client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) claim(t *testing.T, name string) *v1.EphemeralVolumeClaim {
	t.Helper()
	claim := &v1.EphemeralVolumeClaim{}
	if err := c.Get(t.Context(), key(name), claim); err != nil {
		t.Fatal(err)
	}
	return claim
}

func (c *cluster) volume(t *testing.T, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	volume := &corev1.PersistentVolumeClaim{}
	if err := c.Get(t.Context(), key(name), volume); err != nil {
		t.Fatal(err)
	}
	return volume
}
