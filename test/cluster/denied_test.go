package cluster_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// TestDenialsOnARealControlPlane shows how an API server words denials, and what an operator does under a policy.
func TestDenialsOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]func(*testing.T){
		"the texts of denials":         w.denialTexts,
		"a policy that denies records": w.policyDeniesRecords,
	} {
		t.Run(name, test)
	}
}

// denyPolicy is a policy that denies writes of a resource unless an expression holds.
type denyPolicy struct{ name, resource, allowed, reason string }

// manifest returns a ValidatingAdmissionPolicy and its binding.
func (p denyPolicy) manifest() string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [test.einmal.dev], apiVersions: [v1], operations: [CREATE, UPDATE], resources: ["%[2]s"]}]}
  validations: [{expression: %[3]q, message: "no", reason: %[4]s}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, p.name, p.resource, p.allowed, p.reason)
}

// apply applies a policy until the test ends.
func (w *world) apply(t *testing.T, policy denyPolicy) (remove func()) {
	t.Helper()
	manifest := policy.manifest()
	w.Kubectl(t, manifest, "apply", "-f", "-")
	removed := false
	remove = func() {
		if !removed {
			removed = true
			w.Kubectl(t, manifest, "delete", "-f", "-")
		}
	}
	t.Cleanup(remove)
	return remove
}

// denied waits until the API server denies the creation of an object as it should.
func (w *world) denied(t *testing.T, what string, code int32, object client.Object) {
	t.Helper()
	cluster.Eventually(t, what, func(ctx context.Context) error {
		err := w.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			return fmt.Errorf("want a denial, got the error %v", err) //nolint:errorlint // It can be nil.
		}
		if got := status.Status().Code; got != code || !kube.Denied(err) || kube.LacksPermission(err) || kube.TooLarge(err) {
			return fmt.Errorf("code %d, want %d; denied %t: %w", got, code, kube.Denied(err), err)
		}
		return nil
	})
}

// denialTexts is the contract of kube.Denied with the API server: policies with each reason, a webhook with each code, a quota, PodSecurity, and
// what is no denial.
func (w *world) denialTexts(t *testing.T) {
	namespace := w.Namespace(t, "denied-")
	widget := func(deny string) client.Object {
		one := fixture.NewUntypedWidget("one")
		one.SetNamespace(namespace)
		one.SetLabels(map[string]string{"deny": deny})
		return one
	}
	for reason, code := range map[string]int32{
		"Invalid": http.StatusUnprocessableEntity, "Forbidden": http.StatusForbidden, "RequestEntityTooLarge": http.StatusRequestEntityTooLarge,
	} {
		label := strings.ToLower(reason)
		allowed := fmt.Sprintf(`!has(object.metadata.labels) || !("deny" in object.metadata.labels) || object.metadata.labels["deny"] != %q`, label)
		w.apply(t, denyPolicy{"deny-" + label, "widgets", allowed, reason})
		w.denied(t, "a policy with the reason "+reason, code, widget(label))
	}
	w.webhook(t, namespace)
	for label, code := range map[string]int32{"403": 403, "404": 404, "409": 409, "413": 413, "422": 422, "none": 400} {
		w.denied(t, "a webhook with the code "+label, code, widget("webhook-"+label))
	}
	w.Kubectl(t, "", "-n", namespace, "create", "quota", "none", "--hard=count/configmaps=0")
	w.denied(t, "a quota", http.StatusForbidden, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}})
	w.Kubectl(t, "", "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	w.denied(t, "PodSecurity", http.StatusForbidden, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"},
		Spec:       corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "one", Image: "one"}}},
	})
	weak, err := client.New(w.Account(t, "weak"), client.Options{})
	fixture.Must(t, err)
	err = weak.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}})
	if kube.Denied(err) || !kube.LacksPermission(err) {
		t.Errorf("denied %t, lacks a permission %t: %v", kube.Denied(err), kube.LacksPermission(err), err)
	}
}

// webhook denies widgets with a label webhook-CODE in a namespace, with that code.
func (w *world) webhook(t *testing.T, namespace string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID    string         `json:"uid"`
				Object fixture.Widget `json:"object"`
			} `json:"request"`
		}
		_ = json.NewDecoder(r.Body).Decode(&review)
		label, asked := strings.CutPrefix(review.Request.Object.Labels["deny"], "webhook-")
		response := map[string]any{"uid": review.Request.UID, "allowed": !asked}
		var code int
		if _, err := fmt.Sscan(label, &code); err == nil && asked {
			response["status"] = map[string]any{"code": code, "message": "no"}
		}
		_ = json.NewEncoder(answer).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	manifest := fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: deny}
webhooks:
- name: deny.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: %q, caBundle: %s}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  rules: [{apiGroups: [test.einmal.dev], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
`, server.URL, base64.StdEncoding.EncodeToString(authority), namespace)
	w.Kubectl(t, manifest, "apply", "-f", "-")
	t.Cleanup(func() { w.Kubectl(t, manifest, "delete", "-f", "-") })
}

// journaled waits until these calls for an object were made.
func (w *world) journaled(t *testing.T, j *fixture.Journal, name string, want ...string) {
	t.Helper()
	cluster.Eventually(t, "the calls for "+name, func(context.Context) error {
		if got := j.Of(name); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

// policyDeniesRecords has a policy that lets everything pass but the status of frozen objects, in which the record is.
func (w *world) policyDeniesRecords(t *testing.T) {
	use, j := fixture.StatusCarrier(), &fixture.Journal{}
	thaw := w.apply(t, denyPolicy{"freeze", "widgets/status", `!has(object.metadata.labels) || !("frozen" in object.metadata.labels)`, "Invalid"})
	w.allowState(t)
	stop, log := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("make", fixture.Done(j, "make"))
		widgets.OnUpdate("resize", fixture.Done(j, "resize"), einmal.Fields("spec.size"))
		widgets.OnDelete("unmake", fixture.Done(j, "unmake"))
	})
	frozen := strings.Replace(use.Manifest("ice", 1), "metadata: {", "metadata: {labels: {frozen: 'yes'}, ", 1)
	w.Kubectl(t, frozen, "apply", "-f", "-")
	w.Kubectl(t, strings.Replace(frozen, "ice", "snow", 1), "apply", "-f", "-")
	w.journaled(t, j, "ice", "make 1")
	w.journaled(t, j, "snow", "make 1")
	w.Kubectl(t, "", "patch", use.Resource, "ice", "--type=merge", "-p", `{"spec":{"size":2}}`)
	w.journaled(t, j, "ice", "make 1", "resize 1")
	w.Kubectl(t, "", "delete", use.Resource, "snow", "--wait=false")
	w.journaled(t, j, "snow", "make 1", "unmake 1")
	w.vanished(t, use, "snow")
	cluster.Eventually(t, "an event names the policy", func(context.Context) error {
		const path = `jsonpath={.items[?(@.reason=="WriteDenied")].message}`
		if got := w.Kubectl(t, "", "get", "events", "-o", path); !strings.Contains(got, "ValidatingAdmissionPolicy 'freeze'") {
			return fmt.Errorf("the events say %q", got)
		}
		return nil
	})
	fixture.ExpectLine(t, log, "msg=admission denied the record, kept in memory", "object=default/ice")
	thaw()
	w.stored(t, "ice", `"size":2`)
	w.journaled(t, j, "ice", "make 1", "resize 1")
	w.delete(t, use, "ice")
	stop()
}
