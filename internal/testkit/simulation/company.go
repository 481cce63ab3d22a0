package simulation

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/engine"
)

// actAsUser edits or deletes the object whose handler has come to the point of a fault.
func (w *World) actAsUser(fault Fault, on *unstructured.Unstructured) {
	if on == nil {
		w.noteInert(fault)
		return
	}
	if err := w.actOn(on, fault.Kind); client.IgnoreNotFound(err) != nil {
		w.setup.Failed(fmt.Errorf("%s: %w", fault.Kind, err))
	}
}

func (w *World) actOn(one *unstructured.Unstructured, kind Kind) error {
	if kind == UserDeletes {
		return w.User.Delete(context.Background(), one, client.PropagationPolicy("Background"))
	}
	text, err := w.nextEdit(one)
	if err != nil {
		return err
	}
	if err := w.User.Patch(context.Background(), one, client.RawPatch(types.MergePatchType, text)); err != nil {
		return err
	}
	w.history.expect(string(one.GetUID())+strings.Join(editedAnnotation(), "."), byAUser)
	return nil
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

// attemptsAt returns the running attempts that may have come to a point. The context of a request names the handler; effects have none. If several
// objects are being handled and the point names some of them, only their attempts are returned.
func (p *Process) attemptsAt(what string) []engine.Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := ""
	if !isEffect(what) {
		_, by, _ = strings.Cut(what, byHandler)
	}
	var all, named []engine.Attempt
	for attempt := range p.running {
		if by != "" && by != attempt.Handler {
			continue
		}
		all = append(all, attempt)
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(attempt.Object.Name) + `\b`).MatchString(what) {
			named = append(named, attempt)
		}
	}
	if len(objectsOf(all)) > 1 && len(named) > 0 {
		return named
	}
	return all
}

// objectsOf returns the objects that attempts handle, with their kinds.
func objectsOf(attempts []engine.Attempt) map[types.NamespacedName]schema.GroupVersionKind {
	objects := map[types.NamespacedName]schema.GroupVersionKind{}
	for _, attempt := range attempts {
		objects[attempt.Object] = attempt.Kind
	}
	return objects
}

// handles returns the object whose handler has come to a point, nil if that is not clear.
func (p *Process) handles(what string) *unstructured.Unstructured {
	candidates := objectsOf(p.attemptsAt(what))
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
	case fault.Kind == IdleChildEdited:
		var edited bool
		if edited, err = w.editData(child); !edited {
			w.noteInert(fault)
		}
	case fault.Kind == ChildDeleted, fault.Kind == IdleChildDeleted:
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
	var besides []string
	if fault.Kind.WhileIdle() { // A user who writes the status plays a controller, which writes it again.
		besides = []string{statusOf}
	}
	notItsOwn := writtenByUser(child, besides...) || w.handlesKind(child)
	switch fault.Kind {
	case ChildDeleted:
		return notItsOwn
	case IdleChildEdited, IdleChildDeleted: // What a Secret holds may be what cannot be made again.
		return notItsOwn || isSecret(*child)
	case ChildReplaced, IdleChildReplaced:
		held := len(child.GetFinalizers()) > 0 || child.GetKind() == "Namespace" // It is only gone later.
		return held || readsOnly(fault.At.What) && notItsOwn
	default: // The others change nothing that the operator could not restore.
		return false
	}
}

// statusOf is the subresource of the status.
const statusOf = "status"

// writtenByUser reports whether a user has written fields of an object, besides those of some subresources. The operator cannot restore these.
func writtenByUser(one *unstructured.Unstructured, besides ...string) bool {
	return slices.ContainsFunc(one.GetManagedFields(), func(of metav1.ManagedFieldsEntry) bool {
		return of.Manager == user && !slices.Contains(besides, of.Subresource)
	})
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
