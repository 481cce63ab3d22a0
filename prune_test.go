package einmal_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// partsOf applies as many ConfigMaps as the widget is large, and deletes the others.
func partsOf(ctx context.Context, c *einmal.Change[Widget]) error {
	var names []string
	for n := range c.Object.Spec.Size {
		part := configOf(fmt.Sprintf("%s-%d", c.Object.Name, n), n)
		if err := c.Apply(ctx, part); err != nil {
			return err
		}
		names = append(names, part.Name)
	}
	c.Object.Status.Phase = strings.Join(names, " ")
	return c.Prune(ctx, &corev1.ConfigMap{}, names...)
}

// withParts starts an operator that keeps the parts of widgets.
func withParts(w *einmaltest.World) {
	ofWidgets(w, func(widgets *einmal.Kind[Widget]) {
		widgets.Reconcile("keep", partsOf, einmal.Prunes[corev1.ConfigMap](), einmal.Applies(&corev1.ConfigMap{}))
	})
}

func configNames(w *einmaltest.World) []string {
	w.Helper()
	var names []string
	for _, name := range []string{"one-0", "one-1", "one-2", "two-0", "two-1", "two-2", "made", "shared", "foreign"} {
		if w.Get(configOf(name, 0)) {
			names = append(names, name)
		}
	}
	return names
}

// Children that are not wanted any more are deleted, each with one write, however they were made. Everything else stays: children of others, and
// objects that the widget owns but does not control. At rest nothing is written.
func TestChildrenThatAreNotWantedAreDeleted(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		withParts(w)
		one := widgetOf("one")
		one.Spec.Size = 3
		two := widgetOf("two")
		two.Spec.Size = 2
		w.Create(one, two, configOf("foreign", 0))
		w.Advance(time.Minute)
		w.Get(one)
		for name, controller := range map[string]bool{"made": true, "shared": false} {
			owned := configOf(name, 0)
			owned.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: testGroup + "/v1", Kind: "Widget", Name: one.Name, UID: one.UID, Controller: &controller,
			}}
			w.Create(owned)
		}
		w.Advance(time.Minute)
		if diff := cmp.Diff([]string{"one-0", "one-1", "one-2", "two-0", "two-1", "shared", "foreign"}, configNames(w)); diff != "" {
			w.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
		before := len(w.Writes())
		w.Patch(one, `{"spec":{"size":1}}`)
		w.Advance(time.Hour)
		if diff := cmp.Diff([]string{"one-0", "two-0", "two-1", "shared", "foreign"}, configNames(w)); diff != "" {
			w.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
		if after := w.Writes()[before:]; len(after) != 3 {
			w.Errorf("want two deletions and one write of the status, got %v", after)
		}
		w.Patch(one, `{"spec":{"size":0}}`)
		w.Advance(time.Minute)
		if got := configNames(w); slices.Contains(got, "one-0") {
			w.Errorf("without names, there are %v", got)
		}
	})
}

// A child that loses its controller between the look at it and its deletion stays.
func TestAChildThatChangesHandsMeanwhileIsNotDeleted(t *testing.T) {
	virtually(t, testLog(t), func(op *einmal.Operator) {
		einmal.For[Widget](op).Reconcile("keep", partsOf, einmal.Prunes[corev1.ConfigMap](), einmal.Applies(&corev1.ConfigMap{}))
	}, func(t *testing.T, w *virtualWorld) {
		must(t, w.User.Create(t.Context(), widgetOf("one")))
		w.Pass(time.Minute)
		child := configOf("one-0", 0)
		must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(child), child))
		freed := false
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps/one-0") && !freed {
				freed = true
				child.OwnerReferences = nil
				if err := w.User.Update(r.Context(), child); err != nil {
					t.Error(err)
				}
			}
			next.ServeHTTP(answer, r)
		})
		editWidget(t, w, `{"spec":{"size":0}}`)
		w.Pass(time.Minute)
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil || !freed {
			t.Errorf("a child that has no controller any more: %v, freed: %t", err, freed)
		}
	})
}

// A life in which the number of children goes up and down and others disturb them ends with the wanted children, whatever goes wrong.
func TestWhateverGoesWrongOnlyWantedChildrenRemain(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		withParts(w)
		w.Create(widgetOf("one"))
		w.Advance(time.Minute)
		for _, size := range []int{3, 1, 2} {
			w.Patch(widgetOf("one"), fmt.Sprintf(`{"spec":{"size":%d}}`, size))
			w.Advance(time.Minute)
		}
		w.Delete(configOf("one-1", 0))
		w.Advance(10 * time.Minute) // The operator can have been down.
		if diff := cmp.Diff([]string{"one-0", "one-1"}, configNames(w)); diff != "" {
			w.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
	}, einmaltest.NoSpareRights())
}

// The children of a cluster-scoped object are in several namespaces: they are wanted by namespace and name.
func TestChildrenOfAClusterScopedObjectAreNamedWithTheirNamespaces(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := newTestOperator()
			einmal.For[corev1.Namespace](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[corev1.Namespace]) error {
				config := configOf("rules", 1)
				config.Namespace = c.Object.Name
				wanted := []string{}
				if c.Object.Labels["rules"] == "yes" {
					wanted = append(wanted, c.Object.Name+"/rules")
					if err := c.Apply(ctx, config); err != nil {
						return err
					}
				}
				return c.Prune(ctx, &corev1.ConfigMap{}, wanted...)
			}, einmal.Labels("rules", einmal.Present()), einmal.Prunes[corev1.ConfigMap](), einmal.Applies(&corev1.ConfigMap{}))
			return op
		})
		shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"rules": "yes"}}}
		rules := configOf("rules", 1)
		rules.Namespace = "shop"
		w.Create(shop)
		w.Advance(time.Minute)
		if !w.Get(rules) {
			w.Error("the wanted child is not there")
		}
		w.Patch(shop, `{"metadata":{"labels":{"rules":"no"}}}`)
		w.Advance(time.Minute)
		if w.Get(rules) {
			w.Error("the child is there, though it is not wanted")
		}
	})
}

// A handler that prunes a kind without the option is a programming error. So is the option for claims, before anything runs.
func TestPruningThatIsNotDeclaredIsRefused(t *testing.T) {
	log := testLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[Widget](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[Widget]) error {
			return c.Prune(ctx, &corev1.Service{})
		}, einmal.Prunes[corev1.ConfigMap]())
	}, func(t *testing.T, w *virtualWorld) {
		must(t, w.User.Create(t.Context(), widgetOf("one")))
		w.Pass(time.Minute)
	})
	tells(t, log, programmingError, "error~prune Service: no handler of Widget has an option for that; add einmal.Prunes of the Go type of Service to this one")

	op := einmal.New(testIdentity, einmal.Scheme(addTestKinds))
	einmal.For[Widget](op).Reconcile("keep", partsOf, einmal.Prunes[corev1.PersistentVolumeClaim]())
	err := op.SetupWithManager(nil)
	if want := `handler "keep" of Widget: option Prunes of v1.PersistentVolumeClaim: `; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the option for claims gives %v", err)
	}
}

// Prune works in a handler that a test calls as a plain function.
func TestPruneInAHandlerThatATestCalls(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		ofWidgets(w, func(widgets *einmal.Kind[Widget]) {
			widgets.OnCreate("nothing", func(context.Context, *einmal.Change[Widget]) error { return nil })
		})
		one := widgetOf("one")
		w.Create(one)
		w.Get(one)
		call := func(size int) []string {
			given := *one
			given.Spec.Size = size
			change := einmaltest.NewChange(&given)
			change.Client = w.Client()
			if err := partsOf(t.Context(), change); err != nil {
				w.Error(err)
			}
			return configNames(w)
		}
		if made, left := call(2), call(1); len(made) != 2 || len(left) != 1 {
			w.Errorf("made %v, left %v", made, left)
		}
	})
}
