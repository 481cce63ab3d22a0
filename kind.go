package einmal

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// HandlerFunc is the function of a handler. Nil is success. For the meaning of errors, see RetryAfter, RequeueAfter and
// Permanent. A panic is an error. The function can be called again after a crash, so a second run must be harmless.
//
// The context is cancelled after the AttemptTimeout, or when the operator is stopping and its ShutdownTimeout has
// passed.
type HandlerFunc[T any] func(ctx context.Context, c *Change[T]) error

// Kind is one kind of objects that an operator handles. Declare its handlers with its methods, before the operator
// runs. Handlers are called in the order of their declaration.
//
// Each handler has an id of 1 to 63 letters, digits, dots, dashes and underscores, which is unique in its kind. Keep it
// the same in all releases, because records refer to it; to rename a handler, see FormerlyKnownAs.
type Kind[T any] struct {
	op       *Operator
	declared *declaredKind
	empty    func() client.Object
	// every keeps the declarations of ForEvery; it is nil for other kinds. quiet is true while they are repeated for a
	// selected kind.
	every *every[T]
	quiet bool
}

// For declares that the operator handles objects of type T. T is a struct whose pointer is a client.Object and whose
// package is added with Scheme, or a Resource or unstructured.Unstructured with the option GVK. Declare each kind once.
//
// Of core Secrets only digests are recorded, so Old and Diff are always empty for Secrets. The digests are made with a
// key. The operator keeps the key in a Secret named after its identity, in the namespace of StateNamespace. It needs
// the permissions to get and create that Secret. If the key is lost, changes that were not handled before are not
// detected, and trigger no handler.
func For[T any, P interface {
	*T
	client.Object
}](op *Operator, options ...KindOption) *Kind[T] {
	k := &Kind[T]{op: op, declared: &declaredKind{}}
	var settings kindSettings
	known, err := optionsOf(options)
	if err != nil {
		op.mistake(fmt.Errorf("kind %T: %w", *new(T), err))
	}
	for _, one := range known {
		if err := one.kind(&settings); err != nil {
			op.mistake(err)
		}
	}
	gvk, err := op.kindOf(P(new(T)), settings.gvk)
	if err != nil {
		op.mistake(fmt.Errorf("kind %T: %w", *new(T), err))
	}
	k.empty = func() client.Object {
		fresh := P(new(T))
		if _, is := any(fresh).(*unstructured.Unstructured); is {
			fresh.GetObjectKind().SetGroupVersionKind(gvk)
		}
		return fresh
	}
	k.take(gvk)
	op.kinds = append(op.kinds, k.declared)
	return k
}

// OnCreate declares a handler for objects that have not been handled before. Once it has succeeded, it does not run
// again for the same object (the same uid), whatever happens to the object's annotations, the operator or its cache.
// The exception is the annotation <identity>/recreate, with which a user requests another run.
//
// Until it has succeeded, it is retried with the current state of the object. A change in the meantime is part of the
// creation.
func (k *Kind[T]) OnCreate(id string, fn HandlerFunc[T], options ...CreateOption) {
	declareWith(k, cause.Create, id, fn, options)
}

// OnUpdate declares a handler for changes of what it compares: the essence of the object, or its Fields. Diff and Old
// show the difference to the state that the handler last succeeded with, also across restarts. It does not run at
// creation: see AlsoAtCreation.
func (k *Kind[T]) OnUpdate(id string, fn HandlerFunc[T], options ...UpdateOption) {
	declareWith(k, cause.Update, id, fn, options)
}

// OnDelete declares a handler for objects that are being deleted. Einmal adds a finalizer before any other handler
// runs. The finalizer keeps the object until all delete handlers have succeeded. If a delete handler fails permanently,
// the object stays: see ReleaseOnFailure. To add no finalizer, see WithoutFinalizer.
func (k *Kind[T]) OnDelete(id string, fn HandlerFunc[T], options ...DeleteOption) {
	declareWith(k, cause.Delete, id, fn, options)
}

// OnResume declares a handler for objects that an earlier process of the operator has handled. It runs once per process
// and object, when this process first sees the object. It does not run for objects that are being deleted, unless it
// has the option AlsoAtDeletion.
func (k *Kind[T]) OnResume(id string, fn HandlerFunc[T], options ...ResumeOption) {
	declareWith(k, cause.Resume, id, fn, options)
}

// declareWith declares a handler with the options of its verb.
func declareWith[T, O any](k *Kind[T], verb cause.Cause, id string, fn HandlerFunc[T], given []O) {
	options, err := optionsOf(given)
	if err != nil {
		k.mistakeOf(id, err)
	}
	k.declare(verb, id, fn, options)
}

func (k *Kind[T]) declare(verb cause.Cause, id string, fn HandlerFunc[T], options []option) {
	if k.every != nil {
		k.every.verbs = append(k.every.verbs, func(one *Kind[T]) { one.declare(verb, id, fn, options) })
	}
	settings := handlerSettings{context: filterContext{goType: k.declared.goType, read: k.fromBody}}
	if err := settings.take(k.op.defaults); err != nil {
		k.mistakeOf(id, fmt.Errorf("option HandlerDefaults: %w", err))
	}
	settings.defaulted(verb)
	if err := settings.take(options); err != nil {
		k.mistakeOf(id, err)
	}
	for _, err := range settings.misplacedAt(verb) {
		k.mistakeOf(id, err)
	}
	of, err := settings.declaration(verb, id)
	if err != nil {
		k.mistakeOf(id, err)
	}
	if of.Timing, err = settings.timing.of(settings.context); err != nil {
		k.mistakeOf(id, err)
	}
	declared := declaration.Handler{
		Declaration: of, AttemptTimeout: settings.attemptTimeout,
		Concurrency: settings.concurrency, StopGrace: settings.stopGrace, Abandon: settings.abandon,
	}
	settings.retries.into(&declared.Declaration)
	if fn != nil {
		declared.Call = func(ctx context.Context, call *attempt.Call) error { return k.call(ctx, fn, call) }
	}
	k.declared.add(declared)
	k.declared.relate(id, settings.related)
	if !k.quiet {
		k.op.allow(k.declared, settings.permissions)
	}
}

// mistakeOf records an error in the declaration of a handler.
func (k *Kind[T]) mistakeOf(id string, err error) {
	k.mistake(fmt.Errorf("handler %s of %s: %w", id, k.declared.kind.GVK.Kind, err))
}

// call converts the object to the handler's type, calls the handler, and stores what the handler left.
func (k *Kind[T]) call(ctx context.Context, fn HandlerFunc[T], call *attempt.Call) error {
	copied, err := k.fromBody(call.Given)
	if err != nil {
		return err
	}
	// Convert to T and back, so that zero values that the Go type writes are not taken for changes of the handler.
	if call.Given, err = k.canonical(call.Given); err != nil {
		return err
	}
	change := &Change[T]{
		Object: typed[T](copied), Reason: Reason(call.Reason), Diff: differences(call.Diff),
		Attempt: call.Attempt, MaybeRepeated: call.MaybeRepeated, Started: call.Started, Client: k.op.client, Log: call.Log,
		old:  func() (*T, bool) { return k.old(call) },
		memo: call.Memo, driven: true,
		say:   call.Say,
		steps: call.Steps,

		TriggeredBy: relatedObjects(call.TriggeredBy),
		was:         call.Old,
		is:          call.Given,
		apply: applier{
			client: kube.Live(k.op.client), cached: k.op.client, verify: true, identity: k.op.settings.Identity, kind: k.declared.kind.GVK, owner: call.Given,
			pruned: k.pruned,
		},
	}
	change.apply.known = func() *kube.Applied { return Memo[kube.Applied](change) }
	change.left = func() (object.Body, error) { return k.left(change.Object) }
	k.keepUp(change, call)
	failed := fn(ctx, change)
	if call.Left, err = change.left(); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

// left returns the handler's current version of the object.
func (k *Kind[T]) left(of *T) (object.Body, error) {
	if of == nil {
		return nil, errors.New("handler set Object to nil: change the fields of the object instead")
	}
	body, err := bodyOf(k.declared.kind.GVK)(any(of).(client.Object))
	if err != nil {
		return nil, fmt.Errorf("read the object that the handler changed: %w", err)
	}
	plain, err := object.Plain(body)
	if err != nil {
		return nil, &invoke.ProgrammingError{Err: fmt.Errorf("the handler changed Object, but %w", err)}
	}
	return plain, nil
}

// old returns the object as the handler last saw it.
func (k *Kind[T]) old(call *attempt.Call) (*T, bool) {
	if !call.HasOld {
		return nil, false
	}
	body := call.Old
	for _, element := range []string{"namespace", "name", "uid"} {
		if text := object.Text(call.Given, "metadata", element); text != "" {
			body = object.With(body, object.Path{"metadata", element}, text)
		}
	}
	old, err := k.fromBody(body)
	if err != nil {
		return nil, false // Recorded by a release with an incompatible type.
	}
	return typed[T](old), true
}

func (k *Kind[T]) fromBody(body object.Body) (client.Object, error) {
	into := k.empty()
	if free, is := into.(*unstructured.Unstructured); is {
		free.Object = runtime.DeepCopyJSON(body)
		free.SetGroupVersionKind(k.declared.kind.GVK)
		return free, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body, into); err != nil {
		return nil, fmt.Errorf("read the object as %T: %w", into, err)
	}
	return into, nil
}

// canonical converts a body to T and back.
func (k *Kind[T]) canonical(body object.Body) (object.Body, error) {
	if _, is := k.empty().(*unstructured.Unstructured); is {
		return body, nil
	}
	read, err := k.fromBody(body)
	if err != nil {
		return nil, err
	}
	return bodyOf(k.declared.kind.GVK)(read)
}

// bodyOf returns a function that decodes objects of a kind into maps. Secrets have the form in which the API server
// stores them.
func bodyOf(gvk schema.GroupVersionKind) func(client.Object) (object.Body, error) {
	decode := decoder(gvk)
	if !(declaration.Kind{GVK: gvk}).Secret() {
		return decode
	}
	return func(from client.Object) (object.Body, error) {
		body, err := decode(from)
		return object.FoldStringData(body), err
	}
}

func decoder(gvk schema.GroupVersionKind) func(client.Object) (object.Body, error) {
	return func(from client.Object) (object.Body, error) {
		if free, is := from.(*unstructured.Unstructured); is {
			return free.Object, nil
		}
		body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
		if err != nil {
			return nil, fmt.Errorf("decode %T: %w", from, err)
		}
		body["apiVersion"], body["kind"] = gvk.GroupVersion().String(), gvk.Kind
		return body, nil
	}
}

// typed returns an object that was made by Kind.empty as its struct.
func typed[T any](from client.Object) *T {
	known, _ := any(from).(*T)
	return known
}
