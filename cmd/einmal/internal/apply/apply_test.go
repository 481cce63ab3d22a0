package apply

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

func parse(t *testing.T, text string) []manifest.Object {
	t.Helper()
	objects, err := manifest.Parse("demo.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestRejectionListsEachField(t *testing.T) {
	object := parse(t, "apiVersion: example.com/v1\nkind: Claim\nmetadata: {name: demo, namespace: ns}\n")[0]
	err := explain(object, &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonInvalid, Message: "everything at once",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Field: "spec.size", Message: "Invalid value: \"string\": a claim cannot shrink"},
			{Field: "<nil>", Message: "some rules were not checked"},
		}},
	}})
	want := "demo.yaml, document 1 (line 1): Claim ns/demo was rejected by the API server:\n" +
		"  spec.size: Invalid value: \"string\": a claim cannot shrink\n  some rules were not checked"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestErrorsNameARemedy(t *testing.T) {
	object := parse(t, "apiVersion: example.com/v1\nkind: Claim\nmetadata: {name: demo, namespace: ns}\n")[0]
	claims := schema.GroupResource{Group: "example.com", Resource: "claims"}
	for want, err := range map[string]error{
		"CustomResourceDefinition is missing": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Claim"}},
		"einmal kubectl create namespace ns":  apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
		"rejected by the API server":          apierrors.NewForbidden(claims, "demo", fmt.Errorf("policy denied request: x")),
		"rejected by the API server:\n  admission webhook": &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonConflict, Code: http.StatusConflict, Message: `admission webhook "x" denied the request: no`,
		}},
	} {
		if text := explain(object, err).Error(); !strings.Contains(text, want) {
			t.Errorf("error %q does not contain %q", text, want)
		}
	}
}

func TestNamesPrefersShortNames(t *testing.T) {
	const definition = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata: {name: %s}\nspec: {names: {plural: %s, shortNames: [%s]}}\n"
	objects := parse(t, fmt.Sprintf(definition, "a", "ephemeralvolumeclaims", "evc, ev")+
		fmt.Sprintf(definition, "b", "tenants", "")+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	if diff := cmp.Diff([]string{"evc", "tenants"}, Names(objects)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
