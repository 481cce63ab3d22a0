package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Another is the name of another operator. Other writers write its records, so that no handler is concerned.
const Another = "another-operator.example.com"

// disturb does what a fault does around a process, while the process goes on.
func (w *World) disturb(fault Fault) {
	switch fault.Kind { //nolint:exhaustive // The others happen to the process itself.
	case Unreachable:
		w.cut()
	case Overloaded:
		w.mu.Lock()
		w.busyUntil = time.Now().Add(overloadedFor)
		w.mu.Unlock()
	case ClockForward:
		w.jump(clockJump)
	case ClockBack:
		w.jump(-clockJump)
	case BookkeepingWiped:
		w.wipe()
	case RecordReplaced:
		w.replaceRecords(foreignRecord(fault.At.N))
	case OlderRecords:
		w.goBack(fault)
	case RecordForged:
		w.forgeRecords(fault)
	case VersionsReset:
		w.resetVersions()
	case AnotherWriter:
		w.writeAnother(fault.At.N)
	case ChildEdited, ChildReplaced, ChildDeleted:
		w.disturbChild(fault)
	case RollingUpdate, RollBack:
		w.roll(fault.Kind)
	}
}

func (w *World) roll(kind Kind) {
	w.mu.Lock()
	running := w.rollout
	w.updated = true
	w.mu.Unlock()
	if kind == RollBack {
		running.rollBack()
		return
	}
	running.update()
}

// cut lets nothing reach the API server for a while.
func (w *World) cut() {
	w.mu.Lock()
	w.cutUntil = time.Now().Add(unreachableFor)
	processes := w.processes
	w.mu.Unlock()
	for _, p := range processes {
		p.breakWatches()
	}
}

func (w *World) jump(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock += by
}

// overloaded reports whether the API server refuses every request now.
func (w *World) overloaded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.busyUntil)
}

// unreachable reports whether no request arrives now.
func (w *World) unreachable() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.cutUntil)
}

// handledKinds lists the kinds that the operator handles now, but Events.
func (w *World) handledKinds() []schema.GroupVersionKind {
	chosen, err := w.declared.Chosen(context.Background(), discovery.NewDiscoveryClientForConfigOrDie(w.Server.Config()))
	if err != nil {
		w.setup.Failed(fmt.Errorf("find out which kinds are chosen: %w", err))
	}
	return slices.DeleteFunc(slices.Concat(w.declared.Kinds, chosen), func(kind schema.GroupVersionKind) bool { return isEvent(kind.GroupKind()) })
}

// handled lists the objects of the kinds that the operator handles, but Events.
func (w *World) handled() []unstructured.Unstructured {
	var all []unstructured.Unstructured
	for _, kind := range w.handledKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.User.List(context.Background(), list); err != nil {
			w.setup.Failed(fmt.Errorf("list %s: %w", kind.Kind, err))
		}
		all = append(all, list.Items...)
	}
	return all
}

// writeAnother writes into the metadata and the status of every object that the operator handles. What it writes has to stay there.
func (w *World) writeAnother(n int) {
	for _, one := range w.handled() {
		for _, carrier := range []record.Carrier{record.Annotation, record.Status} {
			if err := w.writeRecord(one, carrier, fmt.Sprintf(`{"v":1,"n":%d}`, n)); client.IgnoreNotFound(err) != nil {
				w.setup.Failed(fmt.Errorf("another writer: %w", err))
			}
		}
	}
}

func (w *World) writeRecord(one unstructured.Unstructured, carrier record.Carrier, text string) error {
	at := carrier.Path(Another)
	err := w.writeText(&one, carrier, at, text)
	if err == nil && object.Text(one.Object, at...) == text { // A schema may have no room for it.
		w.history.expect(string(one.GetUID())+strings.Join(at, "."), text)
	}
	return err
}

// writeText sets a text in the metadata or the status of an object.
func (w *World) writeText(one *unstructured.Unstructured, carrier record.Carrier, at object.Path, text string) error {
	document, err := json.Marshal(object.With(object.Body{}, at, text))
	if err != nil {
		return err
	}
	merge := client.RawPatch(types.MergePatchType, document)
	if carrier == record.Status {
		return w.User.Status().Patch(context.Background(), one, merge)
	}
	return w.User.Patch(context.Background(), one, merge)
}

// keptAnother complains where the operator has overwritten what another writer wrote.
func (w *World) keptAnother(one unstructured.Unstructured) {
	twoOperators := w.setup.Schedule.Has(TwoOperators)
	if twoOperators {
		left := slices.DeleteFunc(one.GetFinalizers(), func(name string) bool { return strings.HasPrefix(name, Another+"/") })
		if one.SetFinalizers(left); len(left) == 0 {
			unstructured.RemoveNestedField(one.Object, "metadata", "finalizers")
		}
	}
	for _, carrier := range []record.Carrier{record.Annotation, record.Status} {
		at := carrier.Path(Another)
		want := w.history.expected(string(one.GetUID()) + strings.Join(at, "."))
		if got := object.Text(one.Object, at...); got != want && !twoOperators {
			w.setup.Failed(fmt.Errorf("%s %s: another writer wrote %s into %s, and now it holds %q: what others write is to stay",
				one.GetKind(), one.GetName(), want, at, got))
		}
		unstructured.RemoveNestedField(one.Object, at...)
		for last := len(at) - 1; last > 0 && len(object.Map(one.Object, at[:last]...)) == 0; last-- {
			unstructured.RemoveNestedField(one.Object, at[:last]...)
		}
	}
}

// wipe takes all bookkeeping of the operator from every object, as kubectl replace does with annotations and finalizers,
// and as a tool does that writes the whole status. Objects that are being deleted are left alone.
func (w *World) wipe() {
	for _, one := range w.handled() {
		if one.GetDeletionTimestamp() != nil {
			continue
		}
		err := errors.Join(
			retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.wipeMetadata(one) }),
			retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.wipeStatus(one) }),
		)
		if err != nil {
			w.setup.Failed(fmt.Errorf("wipe the bookkeeping: %w", err))
		}
	}
}

func (w *World) wipeMetadata(one unstructured.Unstructured) error {
	ctx := context.Background()
	if err := w.User.Get(ctx, client.ObjectKeyFromObject(&one), &one); err != nil {
		return client.IgnoreNotFound(err)
	}
	annotations := one.GetAnnotations()
	for name := range annotations {
		if strings.HasPrefix(name, w.declared.Identity+"/") {
			delete(annotations, name)
		}
	}
	one.SetAnnotations(annotations)
	one.SetFinalizers(nil)
	return client.IgnoreNotFound(w.User.Update(ctx, &one))
}

func (w *World) wipeStatus(one unstructured.Unstructured) error {
	ctx, at := context.Background(), record.Status.Path(w.declared.Identity)
	if err := w.User.Get(ctx, client.ObjectKeyFromObject(&one), &one); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.Text(one.Object, at...) == "" {
		return nil
	}
	unstructured.RemoveNestedField(one.Object, at...)
	return client.IgnoreNotFound(w.User.Status().Update(ctx, &one))
}
