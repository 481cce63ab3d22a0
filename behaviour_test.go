package einmal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// TestHandlersOnARealControlPlane shows what handlers can do and what cannot hurt them, on a real API server.
func TestHandlersOnARealControlPlane(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]func(*testing.T){
		"a panic is contained, and an error retried (scenario 22)":     w.panicIsContained,
		"a permanent failure is not retried (scenario 23)":             w.permanentFailure,
		"a stop lets running handlers finish":                          w.stopFinishes,
		"a foreign edit meanwhile survives (principle 5)":              w.foreignEdit,
		"a foreign edit of the very record is folded again":            w.foreignRecord,
		"what the API server refuses is a failure, told once":          w.refusedStatus,
		"an outcome that cannot be written is not forgotten":           w.unsavedOutcome,
		"a handler's own change does not call it (scenario 61)":        w.ownChange,
		"a copied manifest is a new object":                            w.copiedManifest,
		"two operators share a kind":                                   w.twoOperators,
		"a field that the schema does not have is reported (G: §4)":    w.droppedField,
		"children are applied, foreign objects and owners refused":     w.children,
		"an edit wakes a back-off, and Old is typed (scenarios 34, 4)": w.editWakes,
	} {
		t.Run(name, test)
	}
}

// widgets runs an operator with handlers for widgets and returns its log.
func (w *world) widgets(t *testing.T, identity string, declare func(*einmal.Kind[Widget])) (stop func(), log *syncedText) {
	t.Helper()
	log = testLog(t)
	op := einmal.New(identity, einmal.Scheme(addTestKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	declare(einmal.For[Widget](op))
	return w.run(t, op, w.account), log
}

// widget creates a widget through the API and returns it.
func (w *world) widget(t *testing.T, name string) {
	t.Helper()
	w.create(t, typedCarrier(), name)
	t.Cleanup(func() {
		if !t.Failed() {
			w.delete(t, typedCarrier(), name)
		}
	})
}

func typedCarrier() carrier { return carriers()[0] }

// phase waits until the widget's status has this phase.
func (w *world) phase(t *testing.T, name, want string) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	cluster.Eventually(t, fmt.Sprintf("phase %q of %s", want, name), func(ctx context.Context) (err error) {
		if found, err = w.get(ctx, typedCarrier(), name); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(found.Object, "status", "phase"); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	return found
}

func (w *world) panicIsContained(t *testing.T) {
	var others atomic.Int32
	stop, log := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("panics", func(_ context.Context, c *einmal.Change[Widget]) error {
			if c.Attempt < 2 {
				c.Object.Status.Phase = "half-done"
				panic("a bug")
			}
			c.Object.Status.Phase = fmt.Sprintf("attempt %d", c.Attempt)
			return nil
		})
		widgets.OnCreate("other", func(context.Context, *einmal.Change[Widget]) error {
			others.Add(1)
			return nil
		})
	})
	w.widget(t, "panics")
	w.phase(t, "panics", "attempt 2")
	if others.Load() != 1 {
		t.Errorf("the other handler ran %d times, want once", others.Load())
	}
	if text := log.String(); !strings.Contains(text, "panic: a bug") || !strings.Contains(text, "behaviour_test.go") {
		t.Error("the log has not both the panic and its stack")
	}
	stop()
}

func (w *world) permanentFailure(t *testing.T) {
	var calls atomic.Int32
	declare := func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("never", func(context.Context, *einmal.Change[Widget]) error {
			calls.Add(1)
			return einmal.Permanent(errors.New("no such plan"))
		}, einmal.Field("spec.size"))
		widgets.OnCreate("other", func(_ context.Context, c *einmal.Change[Widget]) error {
			c.Object.Status.Phase = "other went on"
			return nil
		})
	}
	stop, _ := w.widgets(t, testIdentity, declare)
	w.widget(t, "never")
	found := w.phase(t, "never", "other went on")
	if text := typedCarrier().record(found); !strings.Contains(text, "no such plan") {
		t.Errorf("the record does not tell the reason: %s", text)
	}
	stop()
	stop, _ = w.widgets(t, testIdentity, declare)
	w.quiet(t, typedCarrier())
	if calls.Load() != 1 {
		t.Errorf("it was called %d times, want once", calls.Load())
	}
	w.edit(t, typedCarrier(), "never", "size", int64(2))
	cluster.Until(t, "a change of what it looks at runs it again", func() bool { return calls.Load() == 2 })
	stop()
}

func (w *world) stopFinishes(t *testing.T) {
	running, finish := make(chan bool), make(chan bool)
	stop, _ := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("long", func(ctx context.Context, c *einmal.Change[Widget]) error {
			running <- true
			<-finish
			c.Object.Status.Phase = fmt.Sprintf("finished, context: %v", ctx.Err())
			return nil
		})
		widgets.OnCreate("next", func(context.Context, *einmal.Change[Widget]) error {
			t.Error("a handler was started after the stop")
			return nil
		})
	})
	w.widget(t, "long")
	<-running
	go func() {
		// By the time that the handler goes on, the stop has been asked for.
		time.AfterFunc(300*time.Millisecond, func() { close(finish) })
	}()
	stop()
	w.phase(t, "long", "finished, context: <nil>")
	var calls atomic.Int32
	stop, _ = w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("long", func(context.Context, *einmal.Change[Widget]) error {
			t.Error("it was called again")
			return nil
		})
		widgets.OnCreate("next", func(context.Context, *einmal.Change[Widget]) error {
			calls.Add(1)
			return nil
		})
	})
	cluster.Until(t, "the handler that had not started runs", func() bool { return calls.Load() == 1 })
	w.quiet(t, typedCarrier())
	stop()
}

// patchStatus writes the status as a third party does.
func (w *world) patchStatus(ctx context.Context, name, patch string) error {
	return w.SubResource("status").Patch(ctx, rawWidget(name), client.RawPatch(types.MergePatchType, []byte(patch)))
}

func rawWidget(name string) *unstructured.Unstructured {
	target := &unstructured.Unstructured{}
	target.SetAPIVersion(testGroup + "/v1")
	target.SetKind("Widget")
	target.SetNamespace("default")
	target.SetName(name)
	return target
}

func (w *world) foreignEdit(t *testing.T) {
	var calls atomic.Int32
	stop, _ := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("slow", func(ctx context.Context, c *einmal.Change[Widget]) error {
			calls.Add(1)
			c.Object.Status.Phase = "ours"
			// Between our reading and our writing somebody writes other parts of the same object.
			return errors.Join(
				w.patchStatus(ctx, c.Object.Name, `{"status":{"records":{"other.example.com":"theirs"}}}`),
				w.Patch(ctx, rawWidget(c.Object.Name),
					client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"their":"label"}}}`))))
		})
	})
	w.widget(t, "busy")
	found := w.phase(t, "busy", "ours")
	theirs, _, _ := unstructured.NestedString(found.Object, "status", "records", "other.example.com")
	if theirs != "theirs" || found.GetLabels()["their"] != "label" || typedCarrier().record(found) == "" {
		t.Errorf("something was lost: %v", found.Object)
	}
	w.quiet(t, typedCarrier())
	if calls.Load() != 1 {
		t.Errorf("the handler was called %d times, want once", calls.Load())
	}
	stop()
}

func (w *world) foreignRecord(t *testing.T) {
	var calls atomic.Int32
	stop, _ := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnUpdate("resize", func(ctx context.Context, c *einmal.Change[Widget]) error {
			calls.Add(1)
			c.Object.Status.Phase = "resized"
			return w.patchStatus(ctx, c.Object.Name, `{"status":{"records":null}}`)
		})
	})
	w.widget(t, "wiped")
	cluster.Eventually(t, "recorded", func(ctx context.Context) error {
		found, err := w.get(ctx, typedCarrier(), "wiped")
		if err == nil && typedCarrier().record(found) == "" {
			err = errors.New("no record")
		}
		return err
	})
	w.edit(t, typedCarrier(), "wiped", "size", int64(2))
	found := w.phase(t, "wiped", "resized")
	if !strings.Contains(typedCarrier().record(found), `"size":2`) {
		t.Errorf("the outcome is not in the record: %s", typedCarrier().record(found))
	}
	w.quiet(t, typedCarrier())
	if calls.Load() != 1 {
		t.Errorf("the handler was called %d times, want once", calls.Load())
	}
	stop()
}

func (w *world) refusedStatus(t *testing.T) {
	var calls atomic.Int32
	stop, log := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("bad", func(_ context.Context, c *einmal.Change[Widget]) error {
			calls.Add(1)
			c.Object.Spec.Color = strings.Repeat("x", 30)
			if c.Attempt > 1 {
				c.Object.Spec.Color = "red"
			}
			return nil
		})
	})
	w.widget(t, "bad")
	cluster.Eventually(t, "the second attempt is accepted", func(ctx context.Context) error {
		found, err := w.get(ctx, typedCarrier(), "bad")
		if color, _, _ := unstructured.NestedString(found.Object, "spec", "color"); err == nil && color != "red" {
			err = fmt.Errorf("color %q after %d calls", color, calls.Load())
		}
		return err
	})
	w.quiet(t, typedCarrier())
	if calls.Load() != 2 {
		t.Errorf("the handler was called %d times, want 2", calls.Load())
	}
	if !strings.Contains(log.String(), "spec.color") {
		t.Error("the log does not name the field")
	}
	stop()
}

func (w *world) unsavedOutcome(t *testing.T) {
	role := &rbacv1.ClusterRole{}
	if err := w.Get(t.Context(), types.NamespacedName{Name: "operator"}, role); err != nil {
		t.Fatal(err)
	}
	full := role.DeepCopy()
	role.Rules[0].Resources = []string{"widgets"}
	if err := w.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	stop, log := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("once", func(_ context.Context, c *einmal.Change[Widget]) error {
			calls.Add(1)
			return nil
		})
	})
	w.widget(t, "unsaved")
	cluster.Until(t, "the operator says what it may not do", func() bool { return strings.Contains(log.String(), "forbidden") })
	cluster.Until(t, "and tries again", func() bool { return strings.Count(log.String(), "could not be handled") >= 3 })
	full.ResourceVersion = role.ResourceVersion
	if err := w.Update(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the outcome is written", func(ctx context.Context) error {
		found, err := w.get(ctx, typedCarrier(), "unsaved")
		if err == nil && typedCarrier().record(found) == "" {
			err = errors.New("no record")
		}
		return err
	})
	w.quiet(t, typedCarrier())
	if calls.Load() != 1 {
		t.Errorf("the handler was called %d times, want once", calls.Load())
	}
	stop()
}

func (w *world) ownChange(t *testing.T) {
	var updates, watched atomic.Int32
	stop, _ := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnUpdate("grow", func(_ context.Context, c *einmal.Change[Widget]) error {
			updates.Add(1)
			c.Object.Spec.Size++
			c.Object.Labels = map[string]string{"size": fmt.Sprint(c.Object.Spec.Size)}
			return nil
		})
		widgets.OnUpdate("watch", func(_ context.Context, c *einmal.Change[Widget]) error {
			watched.Add(1)
			c.Object.Status.Phase = fmt.Sprint(c.Diff)
			return nil
		}, einmal.Field("metadata.labels"))
	})
	w.widget(t, "grows")
	w.quiet(t, typedCarrier())
	w.edit(t, typedCarrier(), "grows", "size", int64(5))
	w.phase(t, "grows", "[{add [metadata labels] <nil> map[size:6]}]")
	w.quiet(t, typedCarrier())
	if updates.Load() != 1 || watched.Load() != 1 {
		t.Errorf("called %d and %d times, want once each", updates.Load(), watched.Load())
	}
	stop()
}

func (w *world) copiedManifest(t *testing.T) {
	j := &journal{}
	use := carriers()[1]
	stop := w.operator(t, use, plan{journal: j})
	w.create(t, use, "original")
	w.called(t, use, j, "original", "make (create, attempt 1)")
	found, err := w.get(t.Context(), use, "original")
	if err != nil {
		t.Fatal(err)
	}
	found.SetName("copy")
	found.SetUID("")
	found.SetResourceVersion("")
	if err := w.Create(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	w.called(t, use, j, "copy", "make (create, attempt 1)")
	stop()
}

func (w *world) twoOperators(t *testing.T) {
	var stops []func()
	for _, identity := range []string{"one.einmal.dev", "two.einmal.dev"} {
		stop, _ := w.widgets(t, identity, func(widgets *einmal.Kind[Widget]) {
			widgets.OnCreate("make", func(context.Context, *einmal.Change[Widget]) error { return nil })
			widgets.OnDelete("unmake", func(context.Context, *einmal.Change[Widget]) error { return nil })
		})
		stops = append(stops, stop)
	}
	w.create(t, typedCarrier(), "shared")
	cluster.Eventually(t, "both have a record and a finalizer", func(ctx context.Context) error {
		found, err := w.get(ctx, typedCarrier(), "shared")
		if err != nil {
			return err
		}
		records, _, _ := unstructured.NestedMap(found.Object, "status", "records")
		finalizers := found.GetFinalizers()
		slices.Sort(finalizers)
		if len(records) != 2 || !slices.Equal(finalizers, []string{"one.einmal.dev/finalizer", "two.einmal.dev/finalizer"}) {
			return fmt.Errorf("records %v, finalizers %q", records, finalizers)
		}
		return nil
	})
	w.delete(t, typedCarrier(), "shared")
	for _, stop := range stops {
		stop()
	}
}

func (w *world) droppedField(t *testing.T) {
	log := testLog(t)
	op := einmal.New(testIdentity, einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(testGroup, "v1", "Gadget"))
	gadgets.OnCreate("typo", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		return unstructured.SetNestedField(c.Object.Object, "x", "status", "phrase")
	})
	stop := w.run(t, op, w.account)
	use := carriers()[1]
	for _, name := range []string{"typo-1", "typo-2"} {
		w.create(t, use, name)
	}
	cluster.Until(t, "the dropped field is reported", func() bool { return strings.Contains(log.String(), "status.phrase") })
	w.quiet(t, use)
	if n := strings.Count(log.String(), "status.phrase"); n != 1 {
		t.Errorf("reported %d times, want once", n)
	}
	stop()
}

func (w *world) children(t *testing.T) {
	account := w.Account(t, "parent",
		rbacv1.PolicyRule{APIGroups: []string{testGroup}, Resources: []string{"widgets", "widgets/status"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: []string{"get", "create", "patch"}})
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: "default"}, Data: map[string]string{"k": "theirs"}}
	if err := w.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	configMap := func(namespace, name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string]string{"k": "ours"}}
	}
	refusals := make(chan []error, 1)
	op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.Logger(slog.New(slog.NewTextHandler(testLog(t), nil))))
	einmal.For[Widget](op).OnCreate("apply", func(ctx context.Context, c *einmal.Change[Widget]) error {
		refusals <- []error{
			c.Apply(ctx, configMap("default", "foreign")),
			c.Apply(ctx, configMap("kube-system", "elsewhere")),
			c.Apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}),
			c.Apply(ctx, configMap("", "")),
			c.Apply(ctx, configMap("", "x"), einmal.Field("spec.size")),
		}
		child := configMap("", "child")
		err := errors.Join(c.Apply(ctx, child), c.Apply(ctx, configMap("", "child")), c.Apply(ctx, configMap("", "adopted"), einmal.Adopt()))
		c.Object.Status.Phase = "applied " + string(child.UID)
		return err
	})
	adopted := configMap("default", "adopted")
	if err := w.Create(t.Context(), adopted); err != nil {
		t.Fatal(err)
	}
	stop := w.run(t, op, account)
	w.Kubectl(t, strings.Replace(typedCarrier().manifest("parent", 1), "namespace", "labels: {team: a}, namespace", 1), "create", "-f", "-")
	wanted := []string{"einmal.Adopt()", "garbage collector", "garbage collector", "no name", "option Field does not belong"}
	for i, err := range <-refusals {
		if err == nil || !strings.Contains(err.Error(), wanted[i]) {
			t.Errorf("refusal %d: got %v, want %q", i, err, wanted[i])
		}
	}
	child := &corev1.ConfigMap{}
	cluster.Eventually(t, "the child is there", func(ctx context.Context) error {
		return w.Get(ctx, types.NamespacedName{Namespace: "default", Name: "child"}, child)
	})
	w.phase(t, "parent", "applied "+string(child.UID))
	if owner := metav1.GetControllerOf(child); owner == nil || owner.Kind != "Widget" || owner.Name != "parent" || child.Labels["team"] != "a" {
		t.Errorf("owner %v, labels %v", owner, child.Labels)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil || foreign.Data["k"] != "theirs" || len(foreign.OwnerReferences) > 0 {
		t.Errorf("the foreign object was touched: %v, %v", foreign, err)
	}
	w.delete(t, typedCarrier(), "parent")
	cluster.Eventually(t, "the garbage collector takes the child and the adopted object", func(ctx context.Context) error {
		for _, name := range []string{"child", "adopted"} {
			if err := w.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, child); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%s is still there (%w)", name, err)
			}
		}
		return nil
	})
	stop()
}

func (w *world) editWakes(t *testing.T) {
	var old atomic.Value
	stop, _ := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnUpdate("resize", func(_ context.Context, c *einmal.Change[Widget]) error {
			before, known := c.Old()
			old.Store(fmt.Sprintf("%v %s/%s %t %d", known, before.Namespace, before.Name, before.UID == c.Object.UID, before.Spec.Size))
			if c.Object.Spec.Size < 10 {
				return fmt.Errorf("size %d is too small", c.Object.Spec.Size)
			}
			c.Object.Status.Phase = fmt.Sprintf("attempt %d", c.Attempt)
			return nil
		})
	})
	w.widget(t, "small")
	w.quiet(t, typedCarrier())
	w.edit(t, typedCarrier(), "small", "size", int64(2))
	cluster.Until(t, "the first attempt", func() bool { return old.Load() != nil })
	begun := time.Now()
	w.edit(t, typedCarrier(), "small", "size", int64(20))
	found := w.phase(t, "small", "attempt 2")
	if want := "true default/small true 1"; old.Load() != want {
		t.Errorf("Old: %v, want %s", old.Load(), want)
	}
	t.Logf("woken after %s at %s", time.Since(begun), found.GetResourceVersion())
	stop()
}
