package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// longName is a name as long as Kubernetes allows, 253 characters, that begins with a letter.
func longName(letter string) string {
	label := strings.Repeat("a", 63)
	return letter + strings.Join([]string{label[1:], label, label, strings.Repeat("b", 61)}, ".")
}

// Objects with names and labels as long as Kubernetes allows are handled, and their events arrive, with an identity that is as long as it may be.
// See https://github.com/kubernetes-sigs/controller-runtime/issues/3511.
func TestFieldNamesAsLongAsKubernetesAllows(t *testing.T) {
	w := newFieldWorld(t, "Shop", "shops")
	identity := strings.Repeat("l", 63) + "." + strings.Repeat("m", 24) + ".example.com" // 100 characters
	op := einmal.New(identity, einmal.Applies(&corev1.ConfigMap{}), einmal.Logger(slog.New(slog.NewTextHandler(fixture.NewLog(t), nil))))
	kind := einmal.For[fixture.Shop](op, einmal.GVK("field.example.com", "v1", "Shop"))
	kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Shop]) error {
		c.Event(einmal.EventNormal, "Making", "the name has %d characters", len(c.Object.Name))
		if c.Object.Spec.Name == "fail" {
			return einmal.Permanent(errors.New("no such thing"))
		}
		c.Object.Status.Seen = "yes"
		child := &corev1.ConfigMap{Data: map[string]string{"text": "hello"}}
		child.Name = c.Object.Name
		return c.Apply(ctx, child)
	})
	kind.OnDelete("unmake", func(_ context.Context, c *einmal.Change[fixture.Shop]) error {
		if c.Object.Spec.Name == "fail" {
			return einmal.Permanent(errors.New("it cannot be unmade"))
		}
		return nil
	})
	fixture.Run(t, op, w.account, einmal.RunOptions{SingleReplica: true, HealthAddress: "0", MetricsAddress: "0"})
	good, bad := longName("g"), longName("b")
	label := fmt.Sprintf("%s.x/%s: %s", strings.Repeat("p", 59), strings.Repeat("k", 63), strings.Repeat("v", 63))
	for name, spec := range map[string]string{good: "{name: work}", bad: "{name: fail}"} {
		manifest := shopManifest(name, spec)
		w.Kubectl(t, strings.Replace(manifest, "namespace: default", "namespace: default, labels: {"+label+"}", 1), "apply", "-f", "-")
		w.untilEvent(t, name, "the name has 253 characters")
	}
	cluster.Until(t, "the good one is handled", func() bool {
		return w.Kubectl(t, "", "get", "shop", good, "-o", "jsonpath={.status.seen}") == "yes"
	})
	if text := w.Kubectl(t, "", "get", "configmap", good, "-o", "jsonpath={.data.text}"); text != "hello" {
		t.Errorf("the child has %q", text)
	}
	w.untilEvent(t, bad, "no such thing")
	w.Kubectl(t, "", "delete", "shop", good, bad, "--wait=false")
	w.Kubectl(t, "", "wait", "--for=delete", "shop/"+good)
	w.untilEvent(t, bad, "set the annotation "+identity+"/release")
}

// noteDefinition has no status, so that records are annotations.
const noteDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.field.example.com}
spec:
  group: field.example.com
  scope: Namespaced
  names: {kind: Note, plural: notes, singular: note, listKind: NoteList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {text: {type: string}}}}}
`

// stripPolicy removes the record from every write, as policies do that allow only annotations of known domains.
const stripPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: strip-annotations}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [field.example.com], apiVersions: [v1], resources: [notes], operations: [CREATE, UPDATE]}]
  matchConditions:
  - name: there-is-one
    expression: "has(object.metadata.annotations) && 'notes.field.example.com/record' in object.metadata.annotations"
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: '[JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey("notes.field.example.com/record")}]'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: strip-annotations}
spec: {policyName: strip-annotations}
`

// A policy removes the record from each write. Handlers run once in a process, and the operator says what is missing. After a restart no create
// handler runs as if for the first time. See https://github.com/kyverno/kyverno/issues/6539.
func TestFieldAPolicyRemovesTheRecord(t *testing.T) {
	w := fieldWorldOf(t, noteDefinition, "notes")
	said := &fixture.Notes{}
	serve := func() (*fixture.Log, func()) {
		log := fixture.NewLog(t)
		op := einmal.New("notes.field.example.com", einmal.ClockMargin(5*time.Second), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
		kind := einmal.For[unstructured.Unstructured](op, einmal.GVK("field.example.com", "v1", "Note"))
		kind.OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.Add("made %s, repeated %t", c.Object.GetName(), c.MaybeRepeated)
			return nil
		})
		kind.OnUpdate("change", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.Add("changed %s", c.Object.GetName())
			return nil
		}, einmal.Fields("spec"))
		return log, fixture.Run(t, op, w.account, einmal.RunOptions{SingleReplica: true, HealthAddress: "0", MetricsAddress: "0"})
	}
	w.Kubectl(t, stripPolicy, "apply", "-f", "-")
	log, stop := serve()
	note := func(name, text string) {
		w.Kubectl(t, fmt.Sprintf("apiVersion: field.example.com/v1\nkind: Note\nmetadata: {name: %s, namespace: default}\nspec: {text: %s}\n", name, text),
			"apply", "-f", "-")
	}
	cluster.Until(t, "the operator watches", func() bool { return log.Count("msg~watching") == 1 })
	note("n1", "a")
	note("n2", "b")
	untilSaid(t, said, "made n1, repeated false", "made n2, repeated false")
	cluster.Until(t, "the log says that the record is not stored", func() bool { return log.Count("msg~record") > 0 })
	note("n1", "c")
	untilSaid(t, said, "changed n1")
	stop()
	_, stop = serve()
	untilSaid(t, said, "made n1, repeated true", "made n2, repeated true")
	stop()
}
