package einmal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

func gadgetOf(name string, size int) *unstructured.Unstructured {
	gadget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(size)}}}
	gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: testGroup, Version: "v1", Kind: "Gadget"})
	gadget.SetNamespace("default")
	gadget.SetName(name)
	return gadget
}

// combined keeps a ConfigMap with the sizes of a widget and of the gadget of its name, and a Secret.
func combined(op *einmal.Operator) {
	sync := func(ctx context.Context, c *einmal.Change[Widget]) error {
		sizes, gadget := fmt.Sprint(c.Object.Spec.Size), gadgetOf("", 0)
		err := c.Client.Get(ctx, types.NamespacedName{Namespace: c.Object.Namespace, Name: c.Object.Name}, gadget)
		if err == nil {
			size, _, _ := unstructured.NestedInt64(gadget.Object, "spec", "size")
			sizes += fmt.Sprint(" and ", size)
		} else if !apierrors.IsNotFound(err) {
			return err
		}
		config := configOf(c.Object.Name, 0)
		config.Data["size"] = sizes
		if err := c.Apply(ctx, config); err != nil {
			return err
		}
		c.Object.Status.Phase = sizes
		secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("stays")}}
		secret.Name = c.Object.Name
		return c.Apply(ctx, secret)
	}
	einmal.For[Widget](op).Reconcile("sync", sync,
		einmal.Owns[corev1.ConfigMap](), einmal.Owns[corev1.Secret](),
		einmal.Watches(func(gadget *unstructured.Unstructured) []types.NamespacedName {
			return []types.NamespacedName{{Name: gadget.GetName()}}
		}, einmal.GVK(testGroup, "v1", "Gadget")))
}

// lifeOfAParent is a life in which others disturb the children, and change what the parent looks at.
func lifeOfAParent(w *einmaltest.World) {
	w.Start(func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.CRDs(testKinds(w)), einmal.StateNamespace("default"),
			einmal.Applies(&corev1.ConfigMap{}, &corev1.Secret{}))
		combined(op)
		return op
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
	w.Create(widgetOf("kept"), widgetOf("deleted"))
	w.Advance(time.Minute)
	w.Delete(configOf("kept", 1))
	w.Create(gadgetOf("kept", 5), gadgetOf("alone", 6))
	w.Advance(10 * time.Minute)
	w.Patch(configOf("kept", 1), `{"data":{"size":"7","other":"stays"}}`)
	w.Delete(secret)
	w.Patch(gadgetOf("kept", 5), `{"spec":{"size":8}}`)
	w.Advance(10 * time.Minute)
	w.Delete(widgetOf("deleted"), gadgetOf("alone", 6))
	w.Patch(secret, `{"data":{"password":"Z29lcw=="}}`)
	w.Advance(10 * time.Minute)
}

// Design §9, principle 9: whatever goes wrong, children are as their parent wants them in the end, and no right is spare.
func TestWhateverGoesWrongChildrenArePutRight(t *testing.T) {
	einmaltest.Explore(t, lifeOfAParent, einmaltest.NoSpareRights())
}

// What the explored life comes to when nothing goes wrong.
func TestALifeOfAParent(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		lifeOfAParent(w)
		config, secret := configOf("kept", 0), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}}
		if !w.Get(config) || config.Data["size"] != "1 and 8" || config.Data["other"] != "stays" {
			w.Errorf("the ConfigMap holds %v", config.Data)
		}
		if !w.Get(secret) || string(secret.Data["password"]) != "stays" {
			w.Error("the Secret is not put right")
		}
	})
}
