package kindloop_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/kindloop"
)

// hooked is a cache that calls a function before it returns an informer.
type hooked struct {
	cache.Cache

	before func()
}

// GetInformer returns no informer.
func (h *hooked) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if before := h.before; before != nil {
		h.before = nil
		before()
	}
	return nil, nil //nolint:nilnil // The test looks at the channel.
}

// RemoveInformer removes no informer.
func (h *hooked) RemoveInformer(context.Context, client.Object) error { return nil }

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// Each user of an informer learns that it was removed. Users of another form of the kind, and those that come later, do not.
func TestUsersLearnThatTheirInformerWasRemoved(t *testing.T) {
	under := &hooked{}
	informers := &kindloop.Informers{Cache: under}
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	get := func(form client.Object) <-chan struct{} {
		t.Helper()
		_, removed, err := informers.Get(t.Context(), kind, form)
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	remove := func() {
		if err := informers.Remove(t.Context(), kind, &corev1.Pod{}); err != nil {
			t.Error(err)
		}
	}
	one, other, metadata := get(&corev1.Pod{}), get(&corev1.Pod{}), get(&metav1.PartialObjectMetadata{})
	if isClosed(one) || isClosed(other) {
		t.Error("an informer counts as removed before it is")
	}
	remove()
	if !isClosed(one) || !isClosed(other) {
		t.Error("a user does not learn that the informer was removed")
	}
	if isClosed(metadata) || isClosed(get(&corev1.Pod{})) {
		t.Error("an informer counts as removed that was not")
	}
	under.before = remove // While it is looked up.
	if isClosed(get(&corev1.Pod{})) {
		t.Error("the user gets an informer that was removed meanwhile")
	}
}
