package virtual_test

import (
	"context"
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
	"github.com/einmal-operators/einmal/test/fixture"
)

// Children that are not wanted any more are deleted, each with one write, however they were made. Everything else stays: children of others, and
// objects that the widget owns but does not control. At rest nothing is written.
func TestChildrenThatAreNotWantedAreDeleted(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		fixture.StartParts(w)
		one := fixture.NewWidget("one")
		one.Spec.Size = 3
		two := fixture.NewWidget("two")
		two.Spec.Size = 2
		w.Create(one, two, fixture.NewConfigMap("foreign", 0))
		w.Advance(time.Minute)
		w.Get(one)
		for name, controller := range map[string]bool{"made": true, "shared": false} {
			owned := fixture.NewConfigMap(name, 0)
			owned.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: fixture.Group + "/v1", Kind: "Widget", Name: one.Name, UID: one.UID, Controller: &controller,
			}}
			w.Create(owned)
		}
		w.Advance(time.Minute)
		if diff := cmp.Diff([]string{"one-0", "one-1", "one-2", "two-0", "two-1", "shared", "foreign"}, fixture.ConfigMaps(w)); diff != "" {
			w.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
		before := len(w.Writes())
		w.Patch(one, `{"spec":{"size":1}}`)
		w.Advance(time.Hour)
		if diff := cmp.Diff([]string{"one-0", "two-0", "two-1", "shared", "foreign"}, fixture.ConfigMaps(w)); diff != "" {
			w.Errorf("ConfigMaps (-want +got):\n%s", diff)
		}
		if after := w.Writes()[before:]; len(after) != 3 {
			w.Errorf("want two deletions and one write of the status, got %v", after)
		}
		w.Patch(one, `{"spec":{"size":0}}`)
		w.Advance(time.Minute)
		if got := fixture.ConfigMaps(w); slices.Contains(got, "one-0") {
			w.Errorf("without names, there are %v", got)
		}
	})
}

// A child that loses its controller between the look at it and its deletion stays.
func TestAChildThatChangesHandsMeanwhileIsNotDeleted(t *testing.T) {
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("keep", fixture.PartsOf, einmal.Prunes[corev1.ConfigMap](), einmal.Applies(&corev1.ConfigMap{}))
	}, func(t *testing.T, w *virtualWorld) {
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Minute)
		child := fixture.NewConfigMap("one-0", 0)
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(child), child))
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

// The children of a cluster-scoped object are in several namespaces: they are wanted by namespace and name.
func TestChildrenOfAClusterScopedObjectAreNamedWithTheirNamespaces(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[corev1.Namespace](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[corev1.Namespace]) error {
				config := fixture.NewConfigMap("rules", 1)
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
		rules := fixture.NewConfigMap("rules", 1)
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
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return c.Prune(ctx, &corev1.Service{})
		}, einmal.Prunes[corev1.ConfigMap]())
	}, func(t *testing.T, w *virtualWorld) {
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Minute)
	})
	fixture.ExpectLine(t, log, fixture.ProgrammingError, "error~prune Service: no handler of Widget has an option for that; add einmal.Prunes of the Go type of Service to this one")

	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds))
	einmal.For[fixture.Widget](op).Reconcile("keep", fixture.PartsOf, einmal.Prunes[corev1.PersistentVolumeClaim]())
	err := op.SetupWithManager(nil)
	if want := `handler "keep" of Widget: option Prunes of v1.PersistentVolumeClaim: `; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the option for claims gives %v", err)
	}
}

// Prune works in a handler that a test calls as a plain function.
func TestPruneInAHandlerThatATestCalls(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
			widgets.OnCreate("nothing", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
		})
		one := fixture.NewWidget("one")
		w.Create(one)
		w.Get(one)
		call := func(size int) []string {
			given := *one
			given.Spec.Size = size
			change := einmaltest.NewChange(&given)
			change.Client = w.Client()
			if err := fixture.PartsOf(t.Context(), change); err != nil {
				w.Error(err)
			}
			return fixture.ConfigMaps(w)
		}
		if made, left := call(2), call(1); len(made) != 2 || len(left) != 1 {
			w.Errorf("made %v, left %v", made, left)
		}
	})
}
