package virtual_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// With NestedLabels the pods of a child get the labels of its owner, where the template has none of the same name. Labels that the owner loses
// are removed there too. The child itself gets labels with CopyLabels only.
func TestNestedLabelsReachThePodTemplate(t *testing.T) {
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("deploy", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			plain := fixture.NewDeployment("plain")
			return errors.Join(
				c.Apply(ctx, fixture.NewDeployment("nested"), einmal.NestedLabels("spec.template")),
				c.Apply(ctx, fixture.NewDeployment("both"), einmal.NestedLabels("spec.template"), einmal.CopyLabels("*")), c.Apply(ctx, plain))
		}, einmal.Fields("metadata.labels"), einmal.Applies(&appsv1.Deployment{}))
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewWidget("one")
		one.Labels = map[string]string{"team": "a", "app": "widget"}
		fixture.Must(t, w.User.Create(t.Context(), one))
		expect := func(name string, labels, template map[string]string) {
			t.Helper()
			w.Pass(time.Minute)
			found := &appsv1.Deployment{}
			fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(fixture.NewDeployment(name)), found))
			if diff := cmp.Diff([]map[string]string{labels, template}, []map[string]string{found.Labels, found.Spec.Template.Labels}); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		owner := map[string]string{"team": "a", "app": "widget"}
		expect("nested", nil, map[string]string{"team": "a", "app": "nested"})
		expect("both", owner, map[string]string{"team": "a", "app": "both"})
		expect("plain", nil, map[string]string{"app": "plain"})
		editWidget(t, w, `{"metadata":{"labels":{"team":null,"tier":"gold"}}}`)
		expect("both", map[string]string{"tier": "gold", "app": "widget"}, map[string]string{"tier": "gold", "app": "both"})
	})
}

// A path that names no object with metadata is an error that names the option and the remedy. It is a programming error.
func TestNestedLabelsWithoutSuchAField(t *testing.T) {
	for want, paths := range map[string][]string{
		"option NestedLabels: must have at least one path, such as spec.template, got none":                                      {},
		`option NestedLabels: field path "spec..template"`:                                                                       {"spec..template"},
		"option NestedLabels: paths must be below the spec or another field of the child's own, got metadata.labels":             {"metadata.labels"},
		"option NestedLabels: paths must be below the spec or another field of the child's own, got status.template":             {"status.template"},
		"option NestedLabels: Deployment has no object at spec.templates; name a field that has metadata, such as spec.template": {"spec.template", "spec.templates"},
		"option NestedLabels: Deployment has no object at spec.template.spec.containers;":                                        {"spec.template.spec.containers"},
	} {
		log := fixture.NewLog(t)
		virtually(t, log, func(op *einmal.Operator) {
			einmal.For[fixture.Widget](op).Reconcile("deploy", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				return c.Apply(ctx, fixture.NewDeployment("one"), einmal.NestedLabels(paths...))
			}, einmal.Applies(&appsv1.Deployment{}))
		}, func(t *testing.T, w *virtualWorld) {
			fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
			w.Pass(time.Minute)
		})
		fixture.ExpectLine(t, log, fixture.ProgrammingError, "error~"+want)
	}
}

// The API server refuses a child as a whole, often without the name of a field. The error of Apply names the fields that the request changes. A child
// that is refused keeps no other from being applied.
func TestARefusedChildIsNamedByField(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("deploy", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			changed := fixture.NewDeployment("one")
			replicas := int32(c.Object.Spec.Size)
			changed.Spec.Replicas = &replicas
			if c.Object.Spec.Size > 1 {
				changed.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
				changed.Spec.Template.Labels = map[string]string{"app": "other"}
			}
			return errors.Join(c.Apply(ctx, changed), c.Apply(ctx, fixture.NewConfigMap("one", c.Object.Spec.Size)))
		}, einmal.Applies(&appsv1.Deployment{}, &corev1.ConfigMap{}))
	}, func(t *testing.T, w *virtualWorld) {
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Minute)
		editWidget(t, w, `{"spec":{"size":2}}`)
		w.Pass(time.Minute)
		config, want := fixture.NewConfigMap("one", 0), fixture.NewConfigMap("one", 2)
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(config), config))
		if diff := cmp.Diff(want.Data, config.Data); diff != "" {
			t.Errorf("the other child (-want +got):\n%s", diff)
		}
	})
	fixture.ExpectLine(t, log, "msg=handler failed, will retry", "attempt=1", "error~field is immutable; the request changes spec.replicas, spec.selector.matchLabels.app, spec.template.metadata.labels.app")
}

// ownersOf lists the owners of a ConfigMap, each with what it is.
func ownersOf(t *testing.T, w *virtualWorld, name string) []string {
	t.Helper()
	found := &corev1.ConfigMap{}
	fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(fixture.NewConfigMap(name, 1)), found))
	var owners []string
	for _, owner := range found.OwnerReferences {
		kind := "owner"
		if owner.Controller != nil && *owner.Controller {
			kind = "controller"
		}
		owners = append(owners, owner.Name+": "+kind)
	}
	slices.Sort(owners)
	return owners
}

// Objects that apply a child with NotController share it: it stays as long as one of them is there, and it can have a controller besides.
func TestOwnersThatAreNotTheControllerShareAChild(t *testing.T) {
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("share", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return errors.Join(
				c.Apply(ctx, fixture.NewConfigMap("shared", 1), einmal.NotController(), einmal.Adopt()),
				c.Apply(ctx, fixture.NewConfigMap("controlled", 1), einmal.NotController(), einmal.Adopt()))
		})
	}, func(t *testing.T, w *virtualWorld) {
		boss := fixture.NewConfigMap("boss", 1)
		fixture.Must(t, w.User.Create(t.Context(), boss))
		controlled := fixture.NewConfigMap("controlled", 1)
		isController := true
		controlled.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: boss.UID, Controller: &isController}}
		fixture.Must(t, w.User.Create(t.Context(), controlled))
		for _, name := range []string{"one", "two"} {
			fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget(name)))
		}
		w.Pass(time.Minute)
		for range 2 {
			if diff := cmp.Diff([]string{"one: owner", "two: owner"}, ownersOf(t, w, "shared")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"boss: controller", "one: owner", "two: owner"}, ownersOf(t, w, "controlled")); diff != "" {
				t.Error(diff)
			}
			editWidget(t, w, `{"spec":{"size":2}}`)
			w.Pass(time.Minute)
		}
		fixture.Must(t, w.User.Delete(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Minute)
		if diff := cmp.Diff([]string{"two: owner"}, ownersOf(t, w, "shared")); diff != "" {
			t.Error(diff)
		}
		fixture.Must(t, w.User.Delete(t.Context(), fixture.NewWidget("two")))
		w.Pass(time.Minute)
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(fixture.NewConfigMap("shared", 1)), &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the child without owners is there: %v", err)
		}
	})
}

// An owner that the operator adds to a shared child between the read and the write of another Apply is kept.
func TestAnOwnerThatComesMeanwhileIsKept(t *testing.T) {
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("share", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return c.Apply(ctx, fixture.NewConfigMap("shared", 1), einmal.NotController(), einmal.Adopt())
		})
	}, func(t *testing.T, w *virtualWorld) {
		boss := fixture.NewConfigMap("boss", 1)
		fixture.Must(t, w.User.Create(t.Context(), boss), w.User.Create(t.Context(), fixture.NewConfigMap("shared", 1)))
		owned := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		owned.SetNamespace("default")
		owned.SetName("shared")
		owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: boss.UID}})
		came := false
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/shared") && !came {
				came = true
				if err := w.User.Apply(r.Context(), client.ApplyConfigurationFromUnstructured(owned), client.FieldOwner(fixture.Identity+"/apply")); err != nil {
					t.Error(err)
				}
			}
			next.ServeHTTP(answer, r)
		})
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Minute)
		if diff := cmp.Diff([]string{"boss: owner", "one: owner"}, ownersOf(t, w, "shared")); diff != "" || !came {
			t.Errorf("owners (-want +got), another came: %t\n%s", came, diff)
		}
	})
}

// A release that adds NotController changes the reference of its children. Without the option it changes back.
func TestAnOwnerStopsToBeTheController(t *testing.T) {
	var options []einmal.ApplyOption
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return c.Apply(ctx, fixture.NewConfigMap("child", 1), options...)
		})
	}, func(t *testing.T, w *virtualWorld) {
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
		for _, step := range []struct {
			options []einmal.ApplyOption
			want    string
		}{{nil, "one: controller"}, {[]einmal.ApplyOption{einmal.NotController()}, "one: owner"}, {nil, "one: controller"}} {
			w.restart(func() { options = step.options })
			w.Pass(time.Minute)
			if diff := cmp.Diff([]string{step.want}, ownersOf(t, w, "child")); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// A child can be applied again after Apply has read it back, with the reference to its owner.
func TestAChildThatWasReadBackIsAppliedAgain(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
			widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				child := fixture.NewConfigMap("child", 1)
				if err := c.Apply(ctx, child); err != nil {
					return err
				}
				child.Data["size"] = "2"
				return c.Apply(ctx, child)
			}, einmal.Applies(&corev1.ConfigMap{}))
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		child := fixture.NewConfigMap("child", 1)
		if w.Get(child); child.Data["size"] != "2" || len(child.OwnerReferences) != 1 {
			w.Errorf("the child is %+v", child)
		}
	})
}

// Apply sends no request for a child that the cache shows as the last Apply left it, and reads it all the same. A child that was edited is restored.
func TestAChildThatIsAsAppliedNeedsNoRequest(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		calls := 0
		fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
			widgets.Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				calls++
				child := fixture.NewConfigMap("child", c.Object.Spec.Size/10)
				err := c.Apply(ctx, child)
				if child.UID == "" || len(child.OwnerReferences) != 1 || child.Namespace != "default" {
					w.Errorf("the child that Apply has read back is %+v", child)
				}
				return err
			}, einmal.Owns[corev1.ConfigMap](), einmal.Applies(&corev1.ConfigMap{}))
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		calledBefore, before := calls, len(w.Writes())
		for _, size := range []string{"2", "3", "4"} { // The desired state of the child stays.
			w.Patch(fixture.NewWidget("one"), `{"spec":{"size":`+size+`}}`)
			w.Advance(time.Minute)
		}
		if after := w.Writes(); calls-calledBefore != 3 || len(after) != before {
			w.Errorf("%d calls sent: %v", calls-calledBefore, after[before:])
		}
		w.Patch(fixture.NewConfigMap("child", 0), `{"data":{"size":"9"}}`)
		checkChild(w, "0")
		w.Patch(fixture.NewWidget("one"), `{"spec":{"size":10}}`)
		checkChild(w, "1")
	})
}

// checkChild expects that the child has a size soon.
func checkChild(w *einmaltest.World, size string) {
	w.Helper()
	w.Advance(time.Minute)
	child := fixture.NewConfigMap("child", 0)
	if w.Get(child); child.Data["size"] != size {
		w.Errorf("the child was not restored to size %s: %v", size, child.Data)
	}
}

// A handler whose object was deleted meanwhile creates no child: the cache of the operator still shows the object. That is no failure. Nor does
// it adopt the object of a user, which the garbage collector would then delete.
func TestAnObjectThatIsGoneGetsNoChild(t *testing.T) {
	for name, options := range map[string][]einmal.ApplyOption{
		"new":                  nil,
		"of a user":            {einmal.Adopt()},
		"of a user and shared": {einmal.Adopt(), einmal.NotController()},
	} {
		t.Run(name, func(t *testing.T) { applyForGone(t, options) })
	}
}

func applyForGone(t *testing.T, options []einmal.ApplyOption) {
	t.Helper()
	log := fixture.NewLog(t)
	var applied error
	calls := 0
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			calls++
			if err := c.Client.Delete(ctx, c.Object); err != nil {
				return err
			}
			applied = c.Apply(ctx, fixture.NewDeployment("child"), options...)
			return applied
		}, einmal.Applies(&appsv1.Deployment{}), einmal.Permissions(&fixture.Widget{}, "delete"))
	}, func(t *testing.T, w *virtualWorld) {
		if options != nil {
			fixture.Must(t, w.User.Create(t.Context(), fixture.NewDeployment("child")))
		}
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
		w.Pass(time.Minute)
		checkChildOfUser(t, w, options != nil)
	})
	if calls != 1 || applied == nil || !strings.Contains(applied.Error(), "apply Deployment child: the Widget one is gone") {
		t.Errorf("%d calls, Apply returned %v", calls, applied)
	}
	if log.Count("level=ERROR") > 0 || log.Count("msg~handler waits") != 1 {
		t.Error("the log calls it a failure")
	}
}

// checkChildOfUser expects that the Deployment of the user has no owner, or that there is none.
func checkChildOfUser(t *testing.T, w *virtualWorld, exists bool) {
	t.Helper()
	child := &appsv1.Deployment{}
	switch err := w.User.Get(t.Context(), client.ObjectKeyFromObject(fixture.NewDeployment("child")), child); {
	case !exists && !apierrors.IsNotFound(err):
		t.Errorf("the child exists: %v", err)
	case exists && (err != nil || len(child.OwnerReferences) > 0):
		t.Errorf("the Deployment of the user has owners %v, %v", child.OwnerReferences, err)
	}
}
