package virtual_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/test/fixture"
)

type boxSpec struct {
	Size  resource.Quantity `json:"size,omitempty"`
	Items []boxItem         `json:"items,omitempty"`
	Notes map[string]any    `json:"notes,omitempty"`
	Since *metav1.Time      `json:"since,omitempty"`
}

type boxItem struct {
	Name   string   `json:"name"`
	Weight *int     `json:"weight,omitempty"`
	Tags   []string `json:"tags,omitempty"`
}

type boxStatus struct {
	einmal.Records `json:",inline"`

	Phase string `json:"phase,omitempty"`
}

type box = einmal.Resource[boxSpec, boxStatus]

func fullBox() *box {
	weight, since := 3, metav1.NewTime(time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC))
	return &box{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one", Labels: map[string]string{"team": "blue"}},
		Spec: boxSpec{
			Size: resource.MustParse("1Gi"), Since: &since,
			Items: []boxItem{{Name: "a", Weight: &weight, Tags: []string{"x", "y"}}, {Name: "b"}},
			Notes: map[string]any{"deep": map[string]any{"list": []any{"one", int64(2)}}},
		},
		Status: boxStatus{Phase: "packed", Records: einmal.Records{Records: map[string]string{"op": "x"}}},
	}
}

// Deep copy is built in. A change of the copy, however deep, does not affect the object.
func TestACopyOfAResourceIsDeep(t *testing.T) {
	from, untouched := fullBox(), fullBox()
	copied := from.DeepCopy()
	if diff := cmp.Diff(untouched, copied); diff != "" {
		t.Errorf("it is not the same: %s", diff)
	}
	copied.Labels["team"] = "red"
	copied.Spec.Size.Add(resource.MustParse("1Gi"))
	*copied.Spec.Items[0].Weight = 4
	copied.Spec.Items[0].Tags[0] = "z"
	copied.Spec.Items[1].Name = "c"
	copied.Spec.Notes["deep"].(map[string]any)["list"].([]any)[0] = "two"
	copied.Spec.Since.Time = copied.Spec.Since.Add(time.Hour)
	copied.Status.Records.Records["op"] = "y"
	if diff := cmp.Diff(untouched, from); diff != "" {
		t.Errorf("a change of the copy reached the object: %s", diff)
	}
	if (*box)(nil).DeepCopy() != nil {
		t.Error("nil does not stay nil")
	}
}

// The cost of the copy by reflection: the number in the documentation of Resource.
func BenchmarkCopyOfAResource(b *testing.B) {
	from := fullBox()
	for b.Loop() {
		from.DeepCopyObject()
	}
}

// A kind in one file is handled like any other. Its definition is generated from its name, and its list type is known.
func TestAResourceIsHandledAsAnyOtherKind(t *testing.T) {
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity)
			boxes := einmal.For[box](op, einmal.GVK("example.com", "v1", "Box"))
			pack := func(ctx context.Context, c *einmal.Change[box]) error {
				var all einmal.ResourceList[boxSpec, boxStatus]
				if err := c.Client.List(ctx, &all, client.InNamespace(c.Object.Namespace)); err != nil {
					return err
				}
				said.Add("%s %s, %d in all", c.Reason, c.Object.Spec.Size.String(), len(all.Items))
				c.Object.Status.Phase = "packed"
				return nil
			}
			boxes.OnCreate("pack", pack)
			boxes.OnUpdate("repack", pack, einmal.Fields("spec.size"))
			boxes.OnDelete("unpack", fixture.Nothing[box])
			return op
		})
		one := fullBox()
		w.Create(one)
		w.Advance(15 * time.Minute)
		said.Expect(w, "create 1Gi, 1 in all")
		w.Patch(one, `{"spec":{"size":"2Gi"}}`)
		w.Advance(time.Minute)
		said.Expect(w, "update 2Gi, 1 in all")
		if !w.Get(one) || one.Status.Phase != "packed" || one.Status.Records.Records[fixture.Identity] == "" || one.Annotations != nil {
			w.Errorf("the object is %+v", one)
		}
		before := len(w.Writes())
		w.Restart()
		w.Advance(time.Minute)
		if made := w.Writes()[before:]; len(made) != 0 {
			w.Errorf("a restart wrote %v", made)
		}
		w.Delete(one)
		w.Advance(time.Minute)
		if w.Get(one) {
			w.Error("it is still there")
		}
	})
}

// A given definition is not generated again.
func TestAGivenDefinitionOfAResourceIsTheOnlyOne(t *testing.T) {
	const given = "# mine\nkind: CustomResourceDefinition\nspec: {group: example.com, names: {kind: Box}}\n---\nkind: x\n"
	op := einmal.New("op.example.com", einmal.CRDs([]byte(given)))
	einmal.For[box](op, einmal.GVK("example.com", "v1", "Box")).OnCreate("x", fixture.Nothing[box])
	declared := hook.Of().Observe(op, nil, nil)
	if len(declared.CRDs) != 1 {
		t.Errorf("%d definitions", len(declared.CRDs))
	}
	other := einmal.New("op.example.com")
	einmal.For[box](other, einmal.GVK("example.com", "v1", "Policy")).OnCreate("x", fixture.Nothing[box])
	var made struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := yaml.Unmarshal(hook.Of().Observe(other, nil, nil).CRDs[0], &made); err != nil || made.Metadata.Name != "policies.example.com" {
		t.Errorf("made %q, %v", made.Metadata.Name, err)
	}
}

// The names of kinds are checked, for Go types that have one already and for those that have none.
func TestNamesOfKindsAreChecked(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds), einmal.CRDs([]byte("{")))
	einmal.For[fixture.Widget](op, einmal.GVK(fixture.Group, "v1", "Gadget")).OnCreate("x", fixture.Nothing[fixture.Widget])
	einmal.For[box](op).OnCreate("x", fixture.Nothing[box])
	einmal.For[box](op, einmal.GVK("example.com", "v1", "Box")).OnCreate("x", fixture.Nothing[box])
	einmal.For[box](op, einmal.GVK("example.com", "v1", "Crate")).OnCreate("x", fixture.Nothing[box])
	einmal.For[einmal.Resource[boxItem, boxItem]](op, einmal.GVK(fixture.Group, "v1", "Widget")).OnCreate("x", fixture.Nothing[einmal.Resource[boxItem, boxItem]])
	einmal.For[unregistered](op, einmal.GVK("example.com", "v1", "Unregistered")).OnCreate("x", fixture.Nothing[unregistered])
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"Kind=Widget, not as test.einmal.dev/v1, Kind=Gadget", "a Resource has no kind of its own", "already registered as example.com/v1, Kind=Box",
		"Kind=Widget is already registered with the Go type fixture.Widget", "option GVK: no kind is registered",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nbut:\n%v", want, err)
		}
	}
}

// unregistered is in no scheme.
type unregistered struct{ fixture.Widget }

// Built-in kinds are handled like any other, namespaced and cluster-scoped ones.
func TestBuiltInKindsAreHandled(t *testing.T) {
	t.Run("ConfigMap", func(t *testing.T) {
		handledBuiltIn(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}, `{"data":{"a":"b"}}`)
	})
	t.Run("Namespace", func(t *testing.T) {
		handledBuiltIn(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, `{"metadata":{"labels":{"team":"blue"}}}`)
	})
	t.Run("Pod", func(t *testing.T) {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one"}}}
		handledBuiltIn(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Spec: spec}, `{"metadata":{"labels":{"team":"blue"}}}`)
	})
	t.Run("Deployment", func(t *testing.T) {
		labels := map[string]string{"app": "one"}
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one"}}},
			},
		}}
		handledBuiltIn(t, deployment, `{"spec":{"paused":true}}`)
	})
}

// handledBuiltIn takes one object through creation, change, restart and deletion.
func handledBuiltIn[T any, P interface {
	*T
	client.Object
}](t *testing.T, one P, change string) {
	t.Helper()
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity)
			kind := einmal.For[T, P](op)
			kind.OnCreate("make", fixture.Nothing[T])
			kind.OnUpdate("change", fixture.Nothing[T])
			kind.OnDelete("unmake", fixture.Nothing[T])
			kind.OnEvent("watch", fixture.Nothing[T])
			return op
		})
		w.Create(one)
		w.Advance(time.Minute)
		w.Patch(one, change)
		w.Advance(time.Minute)
		before := len(w.Writes())
		w.Restart()
		w.Advance(time.Minute)
		if made := w.Writes()[before:]; len(made) != 0 {
			w.Errorf("a restart wrote %v", made)
		}
		w.Delete(one)
		w.Advance(time.Minute)
		name := strings.TrimPrefix(client.ObjectKeyFromObject(one).String(), "/")
		var calls []string
		for _, call := range w.Calls() {
			if own := strings.TrimPrefix(call.Namespace+"/"+call.Name, "/"); own == name && call.Handler != "watch" {
				calls = append(calls, fmt.Sprintf("%s %s", call.Handler, call.Outcome))
			}
		}
		if diff := cmp.Diff([]string{"make done", "change done", "unmake done"}, calls); diff != "" {
			w.Error(diff)
		}
		if w.Get(one) {
			w.Error("it is still there")
		}
	})
}
