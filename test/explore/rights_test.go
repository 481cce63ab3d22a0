package explore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// Permissions that handlers ask for and never use are found.
func TestAnUnusedPermissionIsFound(t *testing.T) {
	finding := einmaltest.Search(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("spares.example.com", einmal.Applies(&corev1.Secret{}))
			einmal.For[corev1.ConfigMap](op).OnCreate("nothing", func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil })
			return op
		})
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
		w.Advance(time.Minute)
	}, einmaltest.NoSpareRights())
	if finding == nil {
		t.Fatal("nothing is found")
	}
	t.Log(finding)
	var spare []string
	for _, broken := range finding.Broken {
		name, _, _ := strings.Cut(broken, " was never used")
		spare = append(spare, name)
	}
	want := []string{"the right to create secrets", "the right to get secrets", "the right to patch secrets"}
	if diff := cmp.Diff(want, spare); diff != "" {
		t.Error(diff)
	}
}
