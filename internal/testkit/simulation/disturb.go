package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// anotherRecord is the annotation that another writer touches: the record of an operator that has nothing to do with
// this one, so that no handler is concerned.
const anotherRecord = "another-operator.example.com/record"

// disturb does what goes wrong around a process, while it goes on.
func (w *World) disturb(fault Fault) {
	switch fault.Kind { //nolint:exhaustive // The others happen to the process itself.
	case Unreachable:
		w.mu.Lock()
		w.cutUntil = time.Now().Add(unreachableFor)
		processes := w.processes
		w.mu.Unlock()
		for _, p := range processes {
			p.breakWatches()
		}
	case ClockForward:
		w.jump(clockJump)
	case ClockBack:
		w.jump(-clockJump)
	case BookkeepingWiped:
		w.wipe()
	case AnotherWriter:
		w.writeAnother(fault.At.N)
	}
}

func (w *World) jump(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock += by
}

// unreachable tells whether no request arrives now.
func (w *World) unreachable() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.cutUntil)
}

// handled lists the objects of the kinds that the operator handles.
func (w *World) handled() []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, kind := range w.declared.Kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.User.List(context.Background(), list); err != nil {
			w.setup.Failed(fmt.Errorf("list %s: %w", kind.Kind, err))
		}
		all = append(all, list.Items...)
	}
	return all
}

// writeAnother changes what is no business of the operator, on every object that it handles.
func (w *World) writeAnother(n int) {
	for _, object := range w.handled() {
		text := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, anotherRecord, fmt.Sprintf(`{"v":1,"n":%d}`, n))
		err := w.User.Patch(context.Background(), &object, client.RawPatch(types.MergePatchType, []byte(text)))
		if client.IgnoreNotFound(err) != nil {
			w.setup.Failed(fmt.Errorf("another writer: %w", err))
		}
	}
}

// wipe takes all bookkeeping of the operator from every object, as kubectl replace does with annotations and finalizers,
// and as a tool does that writes the whole status. Objects that are being deleted are left alone: nobody replaces them.
func (w *World) wipe() {
	for _, object := range w.handled() {
		if object.GetDeletionTimestamp() != nil {
			continue
		}
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.wipeOne(object) })
		if client.IgnoreNotFound(err) != nil {
			w.setup.Failed(fmt.Errorf("wipe the bookkeeping: %w", err))
		}
	}
}

func (w *World) wipeOne(object unstructured.Unstructured) error {
	ctx, key := context.Background(), client.ObjectKeyFromObject(&object)
	if err := w.User.Get(ctx, key, &object); err != nil {
		return err
	}
	annotations := object.GetAnnotations()
	for name := range annotations {
		if strings.HasPrefix(name, w.declared.Identity+"/") {
			delete(annotations, name)
		}
	}
	object.SetAnnotations(annotations)
	object.SetFinalizers(nil)
	if err := w.User.Update(ctx, &object); err != nil {
		return err
	}
	at := record.Status.Path(w.declared.Identity)
	if _, kept, err := unstructured.NestedString(object.Object, at...); !kept || err != nil {
		return nil //nolint:nilerr // What is no text there is no record.
	}
	unstructured.RemoveNestedField(object.Object, at...)
	err := w.User.Status().Update(ctx, &object)
	if apierrors.IsMethodNotSupported(err) {
		return nil
	}
	return err
}
