package cluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namespace creates a namespace whose name begins with the prefix, and returns its name. No other test has a namespace of this name. On a
// shared control plane, the namespace is deleted when the test ends; the test does not wait for that.
func (c *Cluster) Namespace(t *testing.T, prefix string) string {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if err := c.Create(t.Context(), made); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	if c.shared {
		c.deleteAtEnd(t, made)
	}
	return made.Name
}

// deleteAtEnd deletes objects when the test ends.
func (c *Cluster) deleteAtEnd(t *testing.T, objects ...client.Object) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience) // The test's own context has ended.
		defer cancel()
		for _, one := range objects {
			if err := c.Delete(ctx, one); client.IgnoreNotFound(err) != nil {
				t.Errorf("delete the %T %s: %v", one, one.GetName(), err)
			}
		}
	})
}
