package apiserver_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

func BenchmarkStart(b *testing.B) {
	parsed := definitions(b)
	for b.Loop() {
		start(b, apiserver.WithDefinitions(parsed)).Close()
	}
}

func BenchmarkUpdateDeployment(b *testing.B) {
	server := start(b)
	defer server.Close()
	api := clientOf(b, server)
	app := map[string]string{"app": "a"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: app}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: app},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/app:1"}}},
		}},
	}
	create(b, api, deployment)
	for n := int32(0); b.Loop(); n++ {
		deployment.Spec.Replicas = &n
		if err := api.Update(b.Context(), deployment); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPatchStatus(b *testing.B) {
	server := start(b, apiserver.WithDefinitions(definitions(b)))
	defer server.Close()
	api := clientOf(b, server)
	create(b, api, thing("a"))
	for n := 0; b.Loop(); n++ {
		change := fmt.Appendf(nil, `[{"op":"add","path":"/status","value":{"visits":%d}}]`, n)
		if err := api.Status().Patch(b.Context(), thing("a"), client.RawPatch(types.JSONPatchType, change)); err != nil {
			b.Fatal(err)
		}
	}
}
