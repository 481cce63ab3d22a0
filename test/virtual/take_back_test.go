package virtual_test

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
	"github.com/einmal-operators/einmal/test/fixture"
)

const (
	appliedFor = fixture.Identity + "/applied-for"
	formerUID  = fixture.Identity + "/former-uid"
	// earlier is the uid of an object that does not exist any more.
	earlier = "0f6f3a5e-7c1d-4a52-9d5f-2b1f0c7a9e11"
)

// startNotedParts starts an operator that keeps the parts of widgets, and notes why Apply refuses one.
func startNotedParts(w *einmaltest.World, refused *fixture.Notes) {
	w.AllowUnfinished("keep")
	fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			err := fixture.PartsOf(ctx, c)
			if err != nil {
				refused.Add("%v", err)
			}
			return err
		}, einmal.Prunes[corev1.ConfigMap](), einmal.Applies(&corev1.ConfigMap{}))
	})
}

// ownedPart returns how a part is owned: the name of its controller, and its annotation that names the owner.
func ownedPart(w *einmaltest.World, name string) (controller, mark string) {
	w.Helper()
	part := fixture.NewConfigMap(name, 0)
	if !w.Get(part) {
		w.Errorf("%s is not there", name)
		return "", ""
	}
	if of := metav1.GetControllerOf(part); of != nil {
		controller = of.Name + " " + string(of.UID)
	}
	return controller, part.Annotations[appliedFor]
}

// checkOwnedParts expects that a widget controls its parts, and that they name it.
func checkOwnedParts(w *einmaltest.World, widget *fixture.Widget, names ...string) {
	w.Helper()
	w.Get(widget)
	mark := fmt.Sprintf(`{"kind":"Widget.test.einmal.dev","name":%q,"uid":%q}`, widget.Name, widget.UID)
	for _, name := range names {
		controller, got := ownedPart(w, name)
		if diff := cmp.Diff([]string{widget.Name + " " + string(widget.UID), mark}, []string{controller, got}); diff != "" {
			w.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A namespace is restored from a backup: objects have new uids and no owner references. The error of Apply is the command by which the widget takes
// back its children at once. From then on they are as before, also for Prune.
func TestARestoredNamespaceIsTakenBackByOneCommand(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		refused := &fixture.Notes{}
		startNotedParts(w, refused)
		one := fixture.NewWidget("one")
		one.Spec.Size = 3
		w.Create(one)
		w.Advance(time.Minute)
		checkOwnedParts(w, one, "one-0", "one-1", "one-2")
		former := string(one.UID)
		w.RestoreFromBackup(fixture.NewConfigMap("one-0", 0), fixture.NewConfigMap("one-1", 0), fixture.NewConfigMap("one-2", 0), one)
		w.Advance(time.Hour) // The backoff gets long.
		if controller, _ := ownedPart(w, "one-0"); controller != "" {
			w.Errorf("without a word of a user, the child was taken back: it has the controller %s", controller)
		}
		said := refused.Said()
		if len(said) == 0 {
			w.Fatal("Apply has not refused the child")
		}
		want := fmt.Sprintf("apply ConfigMap default/one-0: object exists and does not belong to this owner: it was applied for the Widget one with the uid %s, "+
			"but this Widget has the uid %s; choose another name or delete it; if this Widget continues the earlier one, such as after a restore from a backup: "+
			"kubectl annotate --overwrite --namespace default widgets.test.einmal.dev one %s=%[1]s", former, one.UID, formerUID)
		last := said[len(said)-1] // The first one can be from the moment in which the widget did not exist.
		if diff := cmp.Diff(want, last); diff != "" {
			w.Errorf("the error (-want +got):\n%s", diff)
		}
		name, value, _ := strings.Cut(last[strings.LastIndex(last, " ")+1:], "=")
		w.Patch(one, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value))
		w.Advance(time.Second)
		checkOwnedParts(w, one, "one-0", "one-1", "one-2")
		w.Advance(time.Minute)
		before := len(w.Writes())
		w.Advance(time.Hour)
		if after := w.Writes()[before:]; len(after) > 0 {
			w.Errorf("at rest it writes %v", after)
		}
		w.Patch(one, `{"spec":{"size":1}}`)
		w.Advance(time.Minute)
		if diff := cmp.Diff([]string{"one-0"}, fixture.ConfigMaps(w)); diff != "" {
			w.Errorf("after Prune (-want +got):\n%s", diff)
		}
		refused.Expect(w)
	})
}

// A tool restores only the children, without owner references, of a widget that was not deleted. They name the widget that there is.
func TestChildrenThatAloneWereRestoredAreTakenBack(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		refused := &fixture.Notes{}
		startNotedParts(w, refused)
		one := fixture.NewWidget("one")
		w.Create(one)
		w.Advance(time.Minute)
		w.Patch(fixture.NewConfigMap("one-0", 0), `{"metadata":{"ownerReferences":null}}`)
		w.Advance(time.Minute)
		w.Get(one)
		command := fmt.Sprintf("kubectl annotate --overwrite --namespace default widgets.test.einmal.dev one %s=%s", formerUID, one.UID)
		said := refused.Said()
		if len(said) == 0 || !strings.Contains(said[0], "it was applied for this Widget, but has no owner reference to it; ") || !strings.HasSuffix(said[0], ": "+command) {
			w.Errorf("Apply says %q", said)
		}
		w.Patch(one, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, formerUID, one.UID))
		w.Advance(time.Second)
		checkOwnedParts(w, one, "one-0")
	})
}

// Apply takes back only what was applied for the object that the user names, and has no controller. CheckOwner says the same of each object.
func TestObjectsOfOthersAreNotTakenBack(t *testing.T) {
	mark := func(kind, name, uid string) map[string]string {
		return map[string]string{appliedFor: fmt.Sprintf(`{"kind":%q,"name":%q,"uid":%q}`, kind, name, uid)}
	}
	const another, widgets = "11111111-7c1d-4a52-9d5f-2b1f0c7a9e11", "Widget.test.einmal.dev"
	no, yes := false, true
	by := func(controller *bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", Controller: controller}}
	}
	const foreign, commanded = "it has no owner reference to Widget one; ", formerUID + "=" + another
	for name, test := range map[string]struct {
		annotations map[string]string
		owners      []metav1.OwnerReference
		want        string
	}{
		"taken back":                    {annotations: mark(widgets, "one", earlier)},
		"taken back from another owner": {annotations: mark(widgets, "one", earlier), owners: by(&no)},
		"without a mark":                {want: foreign},
		"another uid":                   {annotations: mark(widgets, "one", another), want: commanded},
		"another name":                  {annotations: mark(widgets, "two", earlier), want: foreign},
		"another kind":                  {annotations: mark("Gadget.test.einmal.dev", "one", earlier), want: foreign},
		"another group":                 {annotations: mark("Widget.example.com", "one", earlier), want: foreign},
		"another controller":            {annotations: mark(widgets, "one", earlier), owners: by(&yes), want: foreign},
		"no JSON":                       {annotations: map[string]string{appliedFor: widgets + "/one " + earlier}, want: foreign},
		"a command in the uid":          {annotations: mark(widgets, "one", "x; rm -rf ~"), want: foreign},
		"no uid":                        {annotations: mark(widgets, "one", ""), want: foreign},
		"another operator": {
			annotations: map[string]string{"other.example.com/applied-for": mark(widgets, "one", earlier)[appliedFor]}, want: foreign,
		},
	} {
		t.Run(name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) { applyToExisting(w, test.annotations, test.owners, test.want) })
		})
	}
}

// applyToExisting creates the ConfigMap one-0 and then the widget one, which continues an earlier one. It expects an error that contains the text, or none.
func applyToExisting(w *einmaltest.World, annotations map[string]string, owners []metav1.OwnerReference, want string) {
	w.Helper()
	applied, checked := &fixture.Notes{}, &fixture.Notes{}
	w.AllowUnfinished("keep")
	fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			found := fixture.NewConfigMap("one-0", 0)
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
				return err
			}
			checked.Add("apply %v", c.CheckOwner(found))
			err := c.Apply(ctx, fixture.NewConfigMap("one-0", 0))
			applied.Add("%v", err)
			return err
		}, einmal.MaxAttempts(1), einmal.Applies(&corev1.ConfigMap{}), einmal.Permissions(&corev1.ConfigMap{}, "get"))
	})
	boss, existing, one := fixture.NewConfigMap("boss", 0), fixture.NewConfigMap("one-0", 9), fixture.NewWidget("one")
	w.Create(boss)
	for i := range owners {
		owners[i].UID = boss.UID
	}
	existing.Annotations, existing.OwnerReferences = annotations, owners
	one.Annotations = map[string]string{formerUID: earlier}
	w.Create(existing, one)
	version := existing.ResourceVersion
	w.Advance(time.Hour)
	says, check := strings.Join(applied.Said(), "\n"), strings.Join(checked.Said(), "\n")
	if want == "" {
		if w.Get(existing); says != "<nil>" || check != "apply <nil>" || existing.Data["size"] != "0" || len(existing.OwnerReferences) != len(owners)+1 {
			w.Errorf("Apply says %s, CheckOwner %s, and the object is %+v", says, check, existing)
		}
		checkOwnedParts(w, one, "one-0")
		return
	}
	if w.Get(existing); !strings.Contains(says, want) || check != says || existing.ResourceVersion != version {
		w.Errorf("Apply says %s, CheckOwner %s, want %q; the object is %+v", says, check, want, existing)
	}
}

// An object that gets a controller between the look at it and the request is not taken back.
func TestAnObjectThatGetsAControllerMeanwhileIsNotTakenBack(t *testing.T) {
	var failed []error
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			failed = append(failed, c.Apply(ctx, fixture.NewConfigMap("child", 1)))
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		boss, child := fixture.NewConfigMap("boss", 1), fixture.NewConfigMap("child", 9)
		child.Annotations = map[string]string{appliedFor: fmt.Sprintf(`{"kind":"Widget.test.einmal.dev","name":"one","uid":%q}`, earlier)}
		fixture.Must(t, w.User.Create(t.Context(), boss), w.User.Create(t.Context(), child))
		came := false
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") && !came {
				came = true
				child.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(boss, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
				if err := w.User.Update(r.Context(), child); err != nil {
					t.Error(err)
				}
			}
			next.ServeHTTP(answer, r)
		})
		one := fixture.NewRedWidget("one")
		one.Annotations = map[string]string{formerUID: earlier}
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		if diff := cmp.Diff([]string{"boss: controller"}, ownersOf(t, w, "child")); diff != "" || !came {
			t.Errorf("owners (-want +got), the controller came: %t\n%s", came, diff)
		}
	})
	if len(failed) != 1 || failed[0] == nil || !strings.Contains(failed[0].Error(), "it has no owner reference to Widget one; ") {
		t.Errorf("Apply returned %v", failed)
	}
}

// Children of an earlier release do not name their owner. The first run of the handler writes each of them once, and no other run writes one.
func TestAnUpgradeMarksEachChildInOneWrite(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		fixture.StartParts(w)
		one := fixture.NewWidget("one")
		one.Spec.Size = 2
		w.Create(one)
		w.Advance(time.Minute)
		w.Stop()
		for _, name := range []string{"one-0", "one-1"} {
			w.Patch(fixture.NewConfigMap(name, 0), fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, appliedFor))
		}
		versions := &fixture.Notes{}
		w.React(&corev1.ConfigMapList{}, func(part client.Object) {
			if strings.HasPrefix(part.GetName(), "one-") {
				versions.Add("%s %s", part.GetName(), part.GetResourceVersion())
			}
		})
		w.Restart()
		w.Advance(time.Hour)
		checkOwnedParts(w, one, "one-0", "one-1")
		w.Patch(one, `{"metadata":{"annotations":{"example.com/edited":"yes"}}}`)
		w.Advance(time.Hour)
		w.Restart()
		w.Advance(time.Hour)
		seen := slices.Compact(slices.Sorted(slices.Values(versions.Said()))) // A watch that begins again shows versions once more.
		names := make([]string, len(seen))
		for i, one := range seen {
			names[i], _, _ = strings.Cut(one, " ")
		}
		if diff := cmp.Diff([]string{"one-0", "one-0", "one-1", "one-1"}, names); diff != "" {
			w.Errorf("the versions of the children before and after the upgrade, %q (-want +got):\n%s", seen, diff)
		}
	})
}

// Owners that share a child do not replace each other's annotation, since they write none.
func TestASharedChildNamesNoOwner(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
			widgets.Reconcile("share", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				return c.Apply(ctx, fixture.NewConfigMap("shared", 1), einmal.NotController(), einmal.Adopt())
			}, einmal.Applies(&corev1.ConfigMap{}))
		})
		w.Create(fixture.NewWidget("one"), fixture.NewWidget("two"))
		w.Advance(time.Minute)
		shared := fixture.NewConfigMap("shared", 0)
		for _, name := range []string{"one", "two"} {
			w.Patch(fixture.NewWidget(name), `{"spec":{"size":5}}`)
			w.Advance(time.Minute)
		}
		if w.Get(shared); len(shared.Annotations) > 0 || len(shared.OwnerReferences) != 2 {
			w.Errorf("the shared child is %+v", shared.ObjectMeta)
		}
	})
}
