package virtual_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// A simulation forbids requests beyond the roles, as a cluster does, and the message names the remedy.
func TestRequestsBeyondTheRolesAreForbidden(t *testing.T) {
	asking := func(options ...einmal.OperatorOption) (said string) {
		einmaltest.Run(t, func(w *einmaltest.World) {
			w.AllowForbidden()
			w.AllowUnfinished("ask")
			w.Start(func(*einmaltest.Process) *einmal.Operator {
				op := einmal.New("asks.example.com", options...)
				einmal.For[corev1.ConfigMap](op).OnCreate("ask", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
					if err := c.Client.Get(ctx, types.NamespacedName{Name: "default"}, &corev1.Namespace{}); err != nil {
						said = err.Error()
						return einmal.Permanent(err)
					}
					return nil
				})
				return op
			})
			w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
			w.Advance(time.Minute)
		})
		return said
	}
	if said := asking(); !strings.Contains(said, "namespaces is forbidden") || !strings.Contains(said, "einmal.Permissions") {
		t.Errorf("without the permission the message is: %s", said)
	}
	if said := asking(einmal.Permissions(&corev1.Namespace{}, "get")); said != "" {
		t.Errorf("with the permission the message is: %s", said)
	}
	if said := asking(einmal.PermissionsIn("default", &corev1.Namespace{}, "get")); !strings.Contains(said, "forbidden") {
		t.Errorf("with the permission in a namespace the message is: %s", said)
	}
	if said := asking(einmal.Permissions(&corev1.Namespace{}, "list")); !strings.Contains(said, "forbidden") {
		t.Errorf("with another verb the message is: %s", said)
	}
}
