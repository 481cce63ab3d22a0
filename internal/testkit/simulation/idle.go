package simulation

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// idleVerb begins the names of points at which nothing happens: idle configmaps default/one.
const idleVerb = "idle"

// Idle is a moment at which nothing happens: no scenario acts, and no request of the operator is disturbed. The faults of the schedule that concern
// children happen here. If no operator runs, nothing happens, since none could repair the children.
func (w *World) Idle() {
	if !w.Running() || len(w.setup.Schedule) > 0 && w.setup.Schedule.Count(Kind.WhileIdle) == 0 {
		return
	}
	for _, child := range w.ownedChildren() {
		what := w.idlePoint(child)
		if what == "" {
			continue
		}
		for _, fault := range w.reachIdle(what) {
			w.disturbChild(fault)
		}
	}
}

// IdlePoints are the children that existed when the world was idle, in order. A child that has existed n times so far has the number n.
func (w *World) IdlePoints() []Point {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.idle)
}

// reachIdle counts that a child exists while the world is idle, and returns what goes wrong with it.
func (w *World) reachIdle(what string) []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
	at := Point{What: what, N: w.counts[what]}
	w.idle = append(w.idle, at)
	return w.faultsAt(at)
}

// idlePoint names the point of a child; "" if its resource is not known.
func (w *World) idlePoint(child unstructured.Unstructured) string {
	kind := child.GroupVersionKind()
	mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return ""
	}
	return idleVerb + " " + mapping.Resource.GroupResource().String() + " " + strings.TrimPrefix(child.GetNamespace()+"/"+child.GetName(), "/")
}

// ownedChildren lists the objects of kinds that the operator owns whose controller is a handled object. It leaves out those that are being deleted, and
// those that control objects themselves, such as a StatefulSet with Pods: what happens to these lasts longer than the repair.
func (w *World) ownedChildren() []unstructured.Unstructured {
	if len(w.declared.Owned) == 0 {
		return nil
	}
	all, kinds := w.everything(), w.handledKinds()
	owners, controllers := map[types.UID]bool{}, map[types.UID]bool{}
	for _, one := range all {
		handled := slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool { return kind.GroupKind() == one.GroupVersionKind().GroupKind() })
		owners[one.GetUID()] = handled && one.GetDeletionTimestamp() == nil
		if of := metav1.GetControllerOf(&one); of != nil {
			controllers[of.UID] = true
		}
	}
	all = slices.DeleteFunc(all, func(one unstructured.Unstructured) bool {
		of := metav1.GetControllerOf(&one)
		owned := slices.Contains(w.declared.Owned, one.GroupVersionKind().GroupKind()) && of != nil && owners[of.UID]
		return !owned || controllers[one.GetUID()] || one.GetDeletionTimestamp() != nil
	})
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return all
}
