package explore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// combined keeps a ConfigMap with the sizes of a widget and of the gadget of its name, as indexes report them, and a Secret. The indexes are as
// new as the trigger of the handler: it is not called again when they catch up.
func combined(op *einmal.Operator) {
	gadgets := einmal.Index(op, "by-name", func(gadget *unstructured.Unstructured) (map[string]int64, error) {
		size, _, err := unstructured.NestedInt64(gadget.Object, "spec", "size")
		return map[string]int64{gadget.GetName(): size}, err
	}, einmal.GVK(fixture.Group, "v1", "Gadget"))
	own := einmal.Index(op, "sizes", func(widget *fixture.Widget) (map[string]int, error) {
		return map[string]int{widget.Name: widget.Spec.Size}, nil
	})
	sync := func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		sizes, gadget := fmt.Sprint(own.Get(c.Object.Name)), fixture.NewGadget(c.Object.Name, 0)
		gadget.SetNamespace(c.Object.Namespace)
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(gadget), gadget)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		sizes += fmt.Sprint(" and ", gadgets.Get(c.Object.Name), " ", err == nil)
		config := fixture.NewConfigMap(c.Object.Name, 0)
		config.Data["size"] = sizes
		if err := c.Apply(ctx, config); err != nil {
			return err
		}
		c.Object.Status.Phase = sizes
		secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("stays")}}
		secret.Name = c.Object.Name
		return c.Apply(ctx, secret)
	}
	einmal.For[fixture.Widget](op).Reconcile("sync", sync,
		einmal.Owns[corev1.ConfigMap](), einmal.Owns[corev1.Secret](),
		einmal.Watches(func(gadget *unstructured.Unstructured) []types.NamespacedName {
			return []types.NamespacedName{{Name: gadget.GetName()}}
		}, einmal.GVK(fixture.Group, "v1", "Gadget")))
}

// lifeOfAParent is a life in which other clients disturb the children and change the inputs of the parent.
func lifeOfAParent(w *einmaltest.World) {
	w.Start(func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("default"),
			einmal.Applies(&corev1.ConfigMap{}, &corev1.Secret{}))
		combined(op)
		return op
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	w.Create(fixture.NewWidget("kept"), fixture.NewWidget("deleted"))
	w.Advance(time.Minute)
	w.Delete(fixture.NewConfigMap("kept", 1))
	w.Create(fixture.NewGadget("kept", 5), fixture.NewGadget("alone", 6))
	w.Advance(10 * time.Minute)
	w.Patch(fixture.NewConfigMap("kept", 1), `{"data":{"size":"7","other":"stays"}}`)
	w.Delete(secret)
	w.Patch(fixture.NewGadget("kept", 5), `{"spec":{"size":8}}`)
	w.Patch(fixture.NewWidget("kept"), `{"spec":{"size":2}}`)
	w.Advance(10 * time.Minute)
	w.Delete(fixture.NewWidget("deleted"), fixture.NewGadget("alone", 6))
	w.Patch(secret, `{"data":{"password":"Z29lcw=="}}`)
	w.Advance(10 * time.Minute)
}

// With any fault, children end in the state that their parent wants, and no permission is unused.
func TestWhateverGoesWrongChildrenArePutRight(t *testing.T) {
	einmaltest.Explore(t, lifeOfAParent, einmaltest.NoSpareRights())
}

// The final state of the explored life without faults.
func TestALifeOfAParent(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		lifeOfAParent(w)
		config, secret := fixture.NewConfigMap("kept", 0), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
		if !w.Get(config) || config.Data["size"] != "[2] and [8] true" || config.Data["other"] != "stays" {
			w.Errorf("the ConfigMap holds %v", config.Data)
		}
		if !w.Get(secret) || string(secret.Data["password"]) != "stays" {
			w.Error("the Secret is not put right")
		}
	})
}

// A metadata event that is in flight when its watch ends leaves no goroutine behind, neither in a process that stops nor for a deleted
// namespace. A remaining goroutine ends this test with "blocked goroutines remain", as it would any other test in virtual time. Whether an event
// is in flight at that moment is up to the scheduler: of forty tries it is several.
func TestAnEventOnItsWayToAWatchThatEndsLeavesNothingBehind(t *testing.T) {
	secrets := func(w *einmaltest.World, namespace string, round int) {
		for n := range 5 {
			w.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("told-%d-%d", round, n)}})
		}
	}
	for name, one := range map[string]struct {
		served []string
		end    func(w *einmaltest.World, round int)
	}{
		"a process": {nil, func(w *einmaltest.World, round int) {
			secrets(w, "default", round)
			w.Restart()
		}},
		"a namespace": {[]string{"passing-*"}, func(w *einmaltest.World, round int) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("passing-", round)}}
			w.Create(namespace)
			w.Advance(time.Minute)
			secrets(w, namespace.Name, round)
			w.Delete(namespace)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.Namespaces(one.served...))
					einmal.For[fixture.Widget](op).Reconcile("sync", fixture.Nothing[fixture.Widget], einmal.Owns[corev1.Secret]())
					return op
				})
				for round := range 40 {
					w.Advance(time.Minute)
					one.end(w, round)
				}
			})
		})
	}
}
