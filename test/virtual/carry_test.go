package virtual_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// replacer is a handler that replaces its object, and the status too, with a copy of what it was given. Before and after
// it notes the record that the API server has.
type replacer struct {
	use     fixture.Carrier
	user    client.Client
	records []string
}

func (r *replacer) replace(ctx context.Context, handlers client.Client, copied client.Object) error {
	another, _ := copied.DeepCopyObject().(client.Object)
	another.SetLabels(map[string]string{"replaced": "yes"})
	failed := errors.Join(r.note(ctx, copied), handlers.Status().Update(ctx, copied), r.note(ctx, copied))
	another.SetResourceVersion(copied.GetResourceVersion())
	return errors.Join(failed, handlers.Update(ctx, another), r.note(ctx, copied))
}

func (r *replacer) note(ctx context.Context, of client.Object) error {
	found := r.object(of.GetName())
	err := r.user.Get(ctx, client.ObjectKeyFromObject(of), found)
	r.records = append(r.records, r.use.Record(found))
	return err
}

func (r *replacer) object(name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetAPIVersion(fixture.Group + "/v1")
	made.SetKind(r.use.Kind)
	made.SetNamespace("default")
	made.SetName(name)
	return made
}

func (r *replacer) declare(op *einmal.Operator) {
	if r.use.Name == "status" {
		einmal.For[fixture.Widget](op).OnUpdate("replace", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			return r.replace(ctx, c.Client, c.Object.DeepCopyObject().(*fixture.Widget))
		}, einmal.Fields("spec.size"))
		return
	}
	gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
	gadgets.OnUpdate("replace", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		return r.replace(ctx, c.Client, c.Object.DeepCopy())
	}, einmal.Fields("spec.size"))
}

// Handlers cannot remove the record. Their copy of the object has none, so a full update with that copy would remove it, and a process that dies
// at that moment would have lost everything.
func TestAHandlerThatReplacesItsObjectKeepsTheRecord(t *testing.T) {
	for _, use := range fixture.Carriers() {
		t.Run("record in the "+use.Name, func(t *testing.T) {
			r := &replacer{use: use}
			virtually(t, fixture.NewLog(t), r.declare, r.life)
			if len(r.records) != 4 || r.records[0] == "" || r.records[1] != r.records[0] || r.records[2] != r.records[0] || r.records[3] == r.records[0] {
				t.Errorf("before, after the status, after the object, after all: %q", r.records)
			}
		})
	}
}

// life is an object that grows.
func (r *replacer) life(t *testing.T, w *virtualWorld) {
	r.user = w.User
	made := r.object("replaced")
	if err := w.User.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
	if err := w.User.Patch(t.Context(), made, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":2}}`))); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
	if err := r.note(t.Context(), made); err != nil {
		t.Error(err)
	}
}
