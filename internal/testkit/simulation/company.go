package simulation

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/engine"
)

// UserAct is an edit or a deletion by a user in the middle of a handler.
type UserAct struct {
	// Object is the kind, namespace and name.
	Object string
	// At is when the handler came to the point. The act itself may be later.
	At time.Time
}

// UserActs returns what users did in the middle of handlers.
func (w *World) UserActs() []UserAct {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.userActs)
}

// actAsUser edits or deletes an object: now, or 3 seconds later for what that is compared with.
func (w *World) actAsUser(kind Kind, on *unstructured.Unstructured) {
	if on == nil {
		return
	}
	w.mu.Lock()
	w.userActs = append(w.userActs, UserAct{Object: on.GetKind() + " " + on.GetNamespace() + "/" + on.GetName(), At: time.Now()})
	w.mu.Unlock()
	act := func() {
		if err := w.actOn(on, kind); client.IgnoreNotFound(err) != nil {
			w.setup.Failed(fmt.Errorf("%s: %w", kind, err))
		}
	}
	if kind == UserEditsLater || kind == UserDeletesLater {
		w.later(userLater, act)
		return
	}
	act()
}

func (w *World) actOn(one *unstructured.Unstructured, kind Kind) error {
	if kind == UserDeletes || kind == UserDeletesLater {
		return w.User.Delete(context.Background(), one, client.PropagationPolicy("Background"))
	}
	edit := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/edited":"by a user"}}}`))
	return w.User.Patch(context.Background(), one, edit)
}

// note keeps in mind which attempts are running.
func (p *Process) note(attempt engine.Attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := attempt.Outcome != ""
	attempt.Outcome, attempt.Number = "", 0
	if delete(p.running, attempt); !ended {
		p.running[attempt] = true
	}
}

// handles returns the object whose handler has come to a point, nil if that is not clear. The context of a request names the handler; effects
// have none. Where several objects are handled, the point must name one of them.
func (p *Process) handles(what string) *unstructured.Unstructured {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := ""
	if !isEffect(what) {
		_, by, _ = strings.Cut(what, byHandler)
	}
	candidates := map[types.NamespacedName]schema.GroupVersionKind{}
	for attempt := range p.running {
		if by == "" || by == attempt.Handler {
			candidates[attempt.Object] = attempt.Kind
		}
	}
	named := map[types.NamespacedName]schema.GroupVersionKind{}
	for object, kind := range candidates {
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(object.Name) + `\b`).MatchString(what) {
			named[object] = kind
		}
	}
	if len(candidates) > 1 {
		candidates = named
	}
	if len(candidates) != 1 {
		return nil
	}
	found := &unstructured.Unstructured{}
	for object, kind := range candidates {
		found.SetGroupVersionKind(kind)
		found.SetNamespace(object.Namespace)
		found.SetName(object.Name)
	}
	return found
}

// disturbChild edits, replaces or deletes the object that the point of the fault is about.
func (w *World) disturbChild(fault Fault) {
	child, err := w.objectOf(fault.At.What)
	if err == nil {
		switch fault.Kind { //nolint:exhaustive // The others are no faults of children.
		case ChildEdited:
			err = w.writeRecord(*child, record.Annotation, fmt.Sprintf(`{"v":1,"n":%d}`, fault.At.N))
		case ChildDeleted:
			if !writtenByUser(child) {
				err = w.User.Delete(context.Background(), child)
			}
		case ChildReplaced:
			if len(child.GetFinalizers()) == 0 && child.GetKind() != "Namespace" { // Else it is only gone later.
				err = w.replace(child)
			}
		}
	}
	if client.IgnoreNotFound(err) != nil && !apierrors.IsAlreadyExists(err) {
		w.setup.Failed(fmt.Errorf("%s %s: %w", fault.Kind, fault.At.What, err))
	}
}

// writtenByUser reports whether a user has written fields of an object. The operator cannot restore these.
func writtenByUser(one *unstructured.Unstructured) bool {
	return slices.ContainsFunc(one.GetManagedFields(), func(of metav1.ManagedFieldsEntry) bool { return of.Manager == user })
}

// replace deletes an object and creates it again with the same content, as kubectl replace --force does. It has another uid then.
func (w *World) replace(one *unstructured.Unstructured) error {
	if err := w.User.Delete(context.Background(), one); err != nil {
		return err
	}
	again := one.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(again.Object, "metadata", field)
	}
	return w.User.Create(context.Background(), again)
}

// objectOf reads the object that a point is about, such as: apply configmaps default/one by make.
func (w *World) objectOf(what string) (*unstructured.Unstructured, error) {
	words := strings.Fields(what)
	if len(words) < 3 { //nolint:mnd // The verb, the resource and the object.
		return nil, fmt.Errorf("%q: %w", what, errNoPoint)
	}
	return w.read(words[1], words[2])
}

// read reads an object by its resource, such as widgets.example.com, and its namespace and name.
func (w *World) read(resource, object string) (*unstructured.Unstructured, error) {
	plural, group, _ := strings.Cut(resource, ".")
	kind, err := w.mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: plural})
	if err != nil {
		return nil, err
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	key := client.ObjectKey{Name: object}
	if namespace, name, namespaced := strings.Cut(object, "/"); namespaced {
		key = client.ObjectKey{Namespace: namespace, Name: name}
	}
	return found, w.User.Get(context.Background(), key, found)
}

// exists reports whether the object of a request exists.
func (w *World) exists(asked Request) bool {
	_, err := w.read(asked.Resource, asked.Object)
	return !apierrors.IsNotFound(err)
}

// Exists reports whether there is an object of this kind and name.
func (w *World) Exists(kind schema.GroupVersionKind, name types.NamespacedName) bool {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	return w.User.Get(context.Background(), name, found) == nil
}

// Kinds are the kinds that the operator handles by name.
func (w *World) Kinds() []schema.GroupVersionKind { return w.declared.Kinds }
