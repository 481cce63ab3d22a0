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

	"github.com/einmal-operators/einmal/internal/engine"
)

// UserAct is an edit or a deletion by a user in the middle of a handler.
type UserAct struct {
	// On is the object: its kind, namespace and name.
	On *unstructured.Unstructured
	// At is when the handler came to the point. The act itself may be later.
	At time.Time
}

// SameObject reports whether two acts are on the same object.
func (a UserAct) SameObject(other UserAct) bool {
	return a.On.GroupVersionKind() == other.On.GroupVersionKind() && client.ObjectKeyFromObject(a.On) == client.ObjectKeyFromObject(other.On)
}

// UserActs returns what users did in the middle of handlers.
func (w *World) UserActs() []UserAct {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.userActs)
}

// actAsUser edits or deletes an object: now, or 3 seconds later for what that is compared with.
func (w *World) actAsUser(kind Kind, on *unstructured.Unstructured) {
	w.mu.Lock()
	if done := len(w.userActs); done < len(w.setup.UserActs) {
		on = w.setup.UserActs[done].On
	}
	if on == nil {
		w.mu.Unlock()
		return
	}
	w.userActs = append(w.userActs, UserAct{On: on, At: time.Now()})
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
	text, err := w.nextEdit(one)
	if err != nil {
		return err
	}
	return w.User.Patch(context.Background(), one, client.RawPatch(types.MergePatchType, text))
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
	switch {
	case err != nil:
	case w.sparesChild(fault, child):
		w.noteInert(fault)
	case fault.Kind == ChildEdited:
		err = w.editChild(child, fault.At.N)
	case fault.Kind == ChildDeleted:
		err = w.User.Delete(context.Background(), child)
	default:
		err = w.replace(child)
	}
	if apierrors.IsNotFound(err) {
		w.noteInert(fault)
	}
	if client.IgnoreNotFound(err) != nil && !apierrors.IsAlreadyExists(err) {
		w.setup.Failed(fmt.Errorf("%s %s: %w", fault.Kind, fault.At.What, err))
	}
}

// sparesChild reports whether a child stays as it is, since the operator could not restore it or would lose it only later.
func (w *World) sparesChild(fault Fault, child *unstructured.Unstructured) bool {
	notItsOwn := writtenByUser(child) || w.handlesKind(child)
	switch fault.Kind {
	case ChildDeleted:
		return notItsOwn
	case ChildReplaced:
		held := len(child.GetFinalizers()) > 0 || child.GetKind() == "Namespace" // It is only gone later.
		return held || readsOnly(fault.At.What) && notItsOwn
	default: // The others change nothing that the operator could not restore.
		return false
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
