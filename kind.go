package einmal

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/engine"
)

// HandlerFunc is a handler. It may be called again after a crash, so a second run must do no harm. Nil is success; see
// RetryAfter and Permanent for what other errors mean. A panic is an error. The context ends with the attempt's
// deadline, or when the operator has been told to stop and the grace period is over.
type HandlerFunc[T any] func(ctx context.Context, c *Change[T]) error

// Kind is one kind of objects that an operator handles. Declare handlers with its verbs before the operator runs; they
// are called in the order of their declaration. Each has an id: unique in its kind, short, made of letters, digits,
// dots, dashes and underscores, and the same in every release, since an object's record refers to it.
type Kind[T any] struct {
	op       *Operator
	declared *declaredKind
	empty    func() client.Object
	// every keeps what is declared for kinds that are chosen at run time; nil for others. quiet: it is declared again.
	every *every[T]
	quiet bool
}

// For declares that the operator handles objects of type T: a struct whose pointer is a client.Object and whose package is added
// with Scheme, a Resource or unstructured.Unstructured with the option GVK. A kind is declared once.
//
// Of core Secrets nothing is recorded but digests, made with a key that the operator keeps in a Secret of its own, named
// after its identity, in the namespace of StateNamespace; it needs the rights to get and create it. So Old and Diff are
// never there for Secrets. Where that key is lost, no handler runs for it: what changed until then counts as seen.
func For[T any, P interface {
	*T
	client.Object
}](op *Operator, options ...Option) *Kind[T] {
	k := &Kind[T]{op: op, declared: &declaredKind{}}
	var settings kindSettings
	for _, option := range options {
		if option.kind == nil {
			op.mistake(option.misplaced("For"))
		} else if err := option.kind(&settings); err != nil {
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

// OnCreate declares a handler for objects that were never handled. Once it has succeeded it does not run again for
// the same object (the same uid), whatever happens to the object's annotations, the operator or its cache. Until then it is
// retried with the newest state of the object; a change meanwhile is part of the creation.
func (k *Kind[T]) OnCreate(id string, fn HandlerFunc[T], options ...Option) {
	k.declare(cause.Create, id, fn, options)
}

// OnUpdate declares a handler for changes of what it looks at: the essence of the object, or the fields given with
// Field. It sees the difference to the state that it last succeeded with, also across restarts. It does not run at
// creation.
func (k *Kind[T]) OnUpdate(id string, fn HandlerFunc[T], options ...Option) {
	k.declare(cause.Update, id, fn, options)
}

// OnDelete declares a handler for objects that are being deleted. A finalizer, set before any other handler runs,
// keeps the object until all delete handlers have succeeded; with the option Optional there is none. One that fails for
// good keeps the object: see ReleaseOnFailure.
func (k *Kind[T]) OnDelete(id string, fn HandlerFunc[T], options ...Option) {
	k.declare(cause.Delete, id, fn, options)
}

// OnResume declares a handler for objects that an earlier process of the operator has handled: it runs once per
// process and object, when this process first sees the object. Objects that are being deleted by then are left out, but for
// the option AlsoAtDeletion.
func (k *Kind[T]) OnResume(id string, fn HandlerFunc[T], options ...Option) {
	k.declare(cause.Resume, id, fn, options)
}

func (k *Kind[T]) declare(verb cause.Cause, id string, fn HandlerFunc[T], options []Option) {
	if k.every != nil {
		k.every.verbs = append(k.every.verbs, func(one *Kind[T]) { one.declare(verb, id, fn, options) })
	}
	settings := handlerSettings{context: filterContext{goType: k.declared.goType, read: k.fromBody}}
	for _, option := range options {
		if option.handler == nil {
			k.mistake(fmt.Errorf("handler %s of %s: %w", id, k.declared.kind.GVK.Kind, option.misplaced("a handler")))
		} else if err := option.handler(&settings); err != nil {
			k.mistake(fmt.Errorf("handler %s of %s: %w", id, k.declared.kind.GVK.Kind, err))
		}
	}
	for _, err := range settings.misplacedAt(verb) {
		k.mistake(fmt.Errorf("handler %s of %s: %w", id, k.declared.kind.GVK.Kind, err))
	}
	declaration, err := settings.declaration(verb, id)
	if err != nil {
		k.mistake(fmt.Errorf("handler %s of %s: %w", id, k.declared.kind.GVK.Kind, err))
	}
	if declaration.Timing, err = settings.timing.of(settings.context); err != nil {
		k.mistake(fmt.Errorf("handler %s of %s: %w", id, k.declared.kind.GVK.Kind, err))
	}
	declared := engine.Handler{
		Declaration: declaration, SaveFirst: settings.saveFirst, CountCrashes: settings.countCrashes,
		Concurrency: settings.concurrency, StopGrace: settings.stopGrace, Abandon: settings.abandon,
	}
	settings.retries.into(&declared.Declaration)
	if fn != nil {
		declared.Call = func(ctx context.Context, call *engine.Call) error { return k.call(ctx, fn, call) }
	}
	k.declared.add(declared)
	k.declared.relate(id, settings.related)
}

// call hands the object to the handler in its own type, and takes back what it made of it.
func (k *Kind[T]) call(ctx context.Context, fn HandlerFunc[T], call *engine.Call) error {
	copied, err := k.fromBody(call.Given)
	if err != nil {
		return err
	}
	// The copy's own form is what it is compared with afterwards: a Go type writes its zero values too.
	if call.Given, err = k.canonical(call.Given); err != nil {
		return err
	}
	change := &Change[T]{
		Object: typed[T](copied), Reason: Reason(call.Reason), Diff: differences(call.Diff),
		Attempt: call.Attempt, MaybeRepeated: call.MaybeRepeated, Started: call.Started, Client: k.op.client, Log: call.Log,
		old:   func() (*T, bool) { return k.old(call) },
		memo:  call.Memo,
		say:   call.Say,
		steps: call.Steps,

		WokenBy: relatedObjects(call.WokenBy),
		was:     call.Old,
		is:      call.Given,
		apply:   applier{client: kube.Live(k.op.client), manager: k.op.applyManager(), kind: k.declared.kind.GVK, owner: call.Given},
	}
	change.left = func() (object.Body, error) { return k.left(change.Object) }
	k.keepUp(change, call)
	failed := fn(ctx, change)
	if call.Left, err = change.left(); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

// left is what a handler has made of its copy so far.
func (k *Kind[T]) left(of *T) (object.Body, error) {
	if of == nil {
		return nil, errors.New("the handler set Object to nil: change the fields of the object instead")
	}
	body, err := bodyOf(k.declared.kind.GVK)(any(of).(client.Object))
	if err != nil {
		return nil, fmt.Errorf("what the handler left cannot be read: %w", err)
	}
	return body, nil
}

// old builds the object as the handler last saw it.
func (k *Kind[T]) old(call *engine.Call) (*T, bool) {
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
		return nil, false // Written by a release whose type does not fit today's.
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

// canonical reads a body as T and writes it again.
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

// bodyOf decodes objects of a kind into maps, Secrets as the API server keeps them.
func bodyOf(gvk schema.GroupVersionKind) func(client.Object) (object.Body, error) {
	decode := decoder(gvk)
	if !(engine.Kind{GVK: gvk}).Secret() {
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

// typed gives back the struct behind an object that was made by Kind.empty.
func typed[T any](from client.Object) *T {
	known, _ := any(from).(*T)
	return known
}
