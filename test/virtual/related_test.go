package virtual_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// keepConfig is a Reconcile that keeps the ConfigMap, and says why it runs.
func keepConfig(said *fixture.Notes) einmal.HandlerFunc[fixture.Widget] {
	return func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		said.Add("%s woken by %v", c.Object.Name, c.TriggeredBy)
		return c.Apply(ctx, fixture.NewConfigMap(c.Object.Name, c.Object.Spec.Size))
	}
}

// A change of a child triggers Reconcile of the parent with the reason named. A deleted child is re-created, and nothing runs when nothing
// changes.
func TestAChildThatIsDeletedOrEditedIsPutRight(t *testing.T) {
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).Reconcile("sync", keepConfig(said), einmal.Owns[corev1.ConfigMap]())
			return op
		})
		w.Create(fixture.NewWidget("one"), fixture.NewWidget("two"), fixture.NewConfigMap("foreign", 7))
		w.Advance(time.Minute)
		said.Said()
		before := len(w.Writes())
		w.Advance(time.Hour)
		said.Expect(w)
		w.Patch(fixture.NewConfigMap("foreign", 7), `{"data":{"size":"8"}}`)
		w.Delete(fixture.NewConfigMap("foreign", 7))
		w.Advance(time.Hour)
		said.Expect(w)
		if made := w.Writes()[before:]; len(made) != 0 {
			w.Errorf("%d writes while nothing changes: %v", len(made), made)
		}
		w.Delete(fixture.NewConfigMap("one", 1))
		w.Advance(time.Minute)
		if !w.Get(fixture.NewConfigMap("one", 1)) {
			w.Error("the child does not come back")
		}
		if lines := said.Said(); len(lines) != 2 || lines[0] != "one woken by [ConfigMap default/one deleted]" || lines[1] != "one woken by [ConfigMap default/one added]" {
			w.Errorf("%q", lines)
		}
		w.Patch(fixture.NewConfigMap("one", 1), `{"data":{"size":"9"}}`)
		w.Advance(time.Minute)
		if config := fixture.NewConfigMap("one", 0); !w.Get(config) || config.Data["size"] != "1" {
			w.Errorf("the child has %v", config.Data)
		}
		if lines := said.Said(); len(lines) != 2 || lines[0] != "one woken by [ConfigMap default/one modified]" {
			w.Errorf("%q", lines)
		}
	})
}

// Scenario 76 in part: a child that is deleted while the watch has a gap comes back when the next list shows it.
func TestAChildThatVanishesInAGapComesBack(t *testing.T) {
	said := &fixture.Notes{}
	lost := simulation.Fault{Kind: simulation.EventLost, At: simulation.Point{What: "configmaps", N: 2}}
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("sync", keepConfig(said), einmal.Owns[corev1.ConfigMap]())
	}, func(t *testing.T, w *virtualWorld) {
		if err := w.User.Create(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		said.Said()
		if err := w.User.Delete(t.Context(), fixture.NewConfigMap("one", 1)); err != nil {
			t.Fatal(err)
		}
		w.Pass(5 * time.Minute)
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(fixture.NewWidget("one")), fixture.NewConfigMap("one", 1)); err != nil {
			t.Errorf("the child: %v", err)
		}
		if lines := said.Said(); len(lines) == 0 || lines[0] != "one woken by [ConfigMap default/one deleted]" {
			t.Errorf("%q", lines)
		}
	}, lost)
}

// colourOf lists the widgets that a ConfigMap names.
func namedIn(config *corev1.ConfigMap) []types.NamespacedName {
	var names []types.NamespacedName
	for name := range strings.FieldsSeq(config.Data["for"]) {
		names = append(names, types.NamespacedName{Name: name})
	}
	return names
}

// A watched object triggers the handlers of the objects that it concerns now or concerned before, and no others.
func TestAWatchedObjectTriggersTheHandlersThatItConcerns(t *testing.T) {
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).Reconcile("sync", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				said.Add("%s woken by %v", c.Object.Name, c.TriggeredBy)
				return nil
			}, einmal.Watches(namedIn))
			return op
		})
		w.Create(fixture.NewWidget("one"), fixture.NewWidget("two"), fixture.NewWidget("three"))
		w.Advance(time.Minute)
		said.Said()
		config := fixture.NewConfigMap("team", 1)
		config.Data["for"] = "one missing"
		w.Create(config)
		w.Advance(time.Minute)
		said.Expect(w, "one woken by [ConfigMap default/team added]")
		w.Patch(config, `{"data":{"for":"two"}}`)
		w.Advance(time.Minute)
		if lines := strings.Join(said.Said(), "\n"); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, "one woken by [ConfigMap default/team modified]") ||
			!strings.Contains(lines, "two woken by [ConfigMap default/team modified]") {
			w.Error(lines)
		}
		w.Delete(config)
		w.Advance(time.Minute)
		said.Expect(w, "two woken by [ConfigMap default/team deleted]")
		w.Restart()
		w.Advance(time.Minute)
		if lines := said.Said(); len(lines) != 3 {
			w.Errorf("at the restart all are looked at, once: %q", lines)
		}
	})
}

// Secrets are not cached where their metadata is enough, and still trigger handlers. The Client reads Secrets live, and ConfigMaps from the
// cache.
func TestOwnedSecretsAreNotCached(t *testing.T) {
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: map[string][]byte{"k": []byte("v")}}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.Applies(&corev1.Secret{}))
			einmal.For[fixture.Widget](op).Reconcile("sync", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				wanted := secret.DeepCopy()
				if err := c.Apply(ctx, wanted); err != nil {
					return err
				}
				found := &corev1.Secret{}
				if err := c.Client.Get(ctx, client.ObjectKeyFromObject(wanted), found); err != nil {
					return err // From a cache it would not be there yet.
				}
				said.Add("%s woken by %v", found.Data["k"], c.TriggeredBy)
				return nil
			}, einmal.Owns[corev1.Secret](), einmal.Owns[metav1.PartialObjectMetadata](einmal.GVK("", "v1", "Secret")))
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		said.Said()
		w.Patch(secret.DeepCopy(), `{"data":{"k":"eA=="}}`)
		w.Advance(time.Minute)
		if lines := said.Said(); len(lines) == 0 || lines[0] != "v woken by [Secret default/one modified]" {
			w.Errorf("%q", lines)
		}
	})
}

// Scenario 84 in part: objects in a namespace that is not served trigger no handler, and no owner is looked up there. Cluster-scoped owners of
// namespaced objects are triggered.
func TestRelatedObjectsAreThoseOfTheNamespacesServed(t *testing.T) {
	said := &fixture.Notes{}
	op := func(of func(*einmal.Operator), options ...einmal.OperatorOption) func(*einmaltest.Process) *einmal.Operator {
		return func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity, append(options, einmal.Applies(&corev1.ConfigMap{}), einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()))...)
			of(op)
			return op
		}
	}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(op(func(op *einmal.Operator) {
			einmal.For[fixture.Widget](op).Reconcile("sync", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				said.Add("%s woken by %v", c.Object.Name, c.TriggeredBy)
				return nil
			}, einmal.Watches(func(config *corev1.ConfigMap) []types.NamespacedName {
				return append(namedIn(config), types.NamespacedName{Namespace: "other", Name: "one"}, types.NamespacedName{})
			}))
		}, einmal.Namespaces("default")))
		w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, fixture.NewWidget("one"))
		w.Advance(time.Minute)
		said.Said()
		there := fixture.NewConfigMap("team", 1)
		there.Namespace, there.Data["for"] = "other", "one"
		w.Create(there)
		w.Advance(time.Minute)
		said.Expect(w)
		here := fixture.NewConfigMap("team", 1)
		here.Data["for"] = "one"
		w.Create(here)
		w.Advance(time.Minute)
		said.Expect(w, "one woken by [ConfigMap default/team added]")
	})
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(op(func(op *einmal.Operator) {
			einmal.For[corev1.Namespace](op).Reconcile("sync", func(ctx context.Context, c *einmal.Change[corev1.Namespace]) error {
				said.Add("%s woken by %v", c.Object.Name, c.TriggeredBy)
				config := fixture.NewConfigMap("inside", 1)
				config.Namespace = c.Object.Name
				return c.Apply(ctx, config)
			}, einmal.Owns[corev1.ConfigMap](), einmal.Labels("team", einmal.Present()))
		}))
		w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "a"}}})
		w.Advance(time.Minute)
		said.Said()
		inside := fixture.NewConfigMap("inside", 1)
		inside.Namespace = "a"
		w.Delete(inside)
		w.Advance(time.Minute)
		if lines := said.Said(); !w.Get(inside) || len(lines) == 0 || lines[0] != "a woken by [ConfigMap a/inside deleted]" {
			w.Errorf("%q", lines)
		}
	})
}

// Scenario 82 in part: a related kind that is not served blocks nothing, and triggers handlers once it is served. A function that panics
// triggers no handler and ends nothing.
func TestAFunctionOfWatchesThatPanicsTriggersNoHandler(t *testing.T) {
	said, log := &fixture.Notes{}, &fixture.Log{}
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("sync", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			said.Add("%s woken by %v", c.Object.Name, c.TriggeredBy)
			return nil
		}, einmal.Watches(func(config *corev1.ConfigMap) []types.NamespacedName {
			if config.Name == "bad" {
				panic("no such team")
			}
			return namedIn(config)
		}), einmal.Owns[metav1.PartialObjectMetadata](einmal.GVK("none.example.com", "v1", "Nothing")))
	}, func(t *testing.T, w *virtualWorld) {
		bad, good := fixture.NewConfigMap("bad", 1), fixture.NewConfigMap("good", 1)
		good.Data["for"] = "one"
		for _, one := range []client.Object{fixture.NewWidget("one"), bad, good} {
			if err := w.User.Create(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			w.Pass(time.Minute)
		}
		said.Expect(t, "one woken by []", "one woken by [ConfigMap default/good added]")
	})
	for _, want := range [][]string{{"msg~mapping function of Watches failed", "error~no such team"}, {"msg~related kind not served"}} {
		if log.Count(want...) == 0 {
			t.Errorf("not logged: %q\n%s", want, log)
		}
	}
}

// Run returns all mistakes in related kinds as one error that names the remedy.
func TestMistakesInRelatedKinds(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[fixture.Widget](op)
	widgets.Reconcile("no-function", fixture.Nothing[fixture.Widget], einmal.Watches[corev1.ConfigMap](nil))
	widgets.Reconcile("no-name", fixture.Nothing[fixture.Widget], einmal.Owns[metav1.PartialObjectMetadata]())
	widgets.Reconcile("no-package", fixture.Nothing[fixture.Widget], einmal.Owns[foreign]())
	widgets.Reconcile("two-forms", fixture.Nothing[fixture.Widget], einmal.Owns[unstructured.Unstructured](einmal.GVK(fixture.Group, "v1", "Widget")))
	widgets.Reconcile("two-versions", fixture.Nothing[fixture.Widget], einmal.Owns[metav1.PartialObjectMetadata](einmal.GVK(fixture.Group, "v2", "Widget")))
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"handler no-function of Widget: option Watches: the function is nil",
		`handler "no-name" of Widget: option Owns of v1.PartialObjectMetadata: PartialObjectMetadata does not say its kind`, `handler "no-package" of Widget: option Owns of virtual_test.foreign: `,
		"handler \"two-forms\" of Widget: option Owns of unstructured.Unstructured: ", `handler "two-versions" of Widget: option Owns of v1.PartialObjectMetadata: `,
		"use the same type and version for both",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nbut:\n%v", want, err)
		}
	}
}

// foreign is a type that is not in the scheme.
type foreign struct{ corev1.ConfigMap }
