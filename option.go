package einmal

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// OperatorOption configures an operator: it is an option of New.
type OperatorOption interface{ ofOperator() }

// KindOption describes a kind of objects: it is an option of For, Owns, Prunes, Watches and Index.
type KindOption interface {
	IndexOption

	ofKind()
}

// HandlerOption is an option of every verb that handles an object: OnCreate, OnUpdate, OnField, OnDelete, OnResume, Reconcile, Timer and
// Daemon. HandlerDefaults takes it too. OnEvent does not: see EventOption.
type HandlerOption interface { //nolint:interfacebloat // One method for each verb.
	CreateOption
	UpdateOption
	DeleteOption
	ResumeOption
	ReconcileOption
	TimerOption
	DaemonOption
}

// Filter selects objects: it is an option of every verb and of Index, and what All, Any, Not and None take. With several filters all must
// match.
//
// An object that matches no handler of its kind gets no record, no finalizer and no log lines. When an object starts to match a
// handler, that is a creation for this handler: a create handler runs, unless it has already run for this object; an update handler starts
// from the present state; a delete handler adds the finalizer. When the object stops matching, the handler is no longer called, and the
// finalizer is removed unless a delete handler has already started. An object that had a record before a create handler was
// declared counts as created for it.
type Filter interface {
	HandlerOption
	EventOption
	IndexOption

	asFilter() option
}

// RecordedOption is an option of the verbs whose outcome is recorded: OnCreate, OnUpdate, OnField, OnDelete and OnResume.
type RecordedOption interface {
	CreateOption
	UpdateOption
	DeleteOption
	ResumeOption
}

// RetryOption says how failures are retried: it is an option of every verb but OnEvent, and of Index.
type RetryOption interface {
	HandlerOption
	IndexOption
}

// FieldsOption is an option of the verbs that compare an object with what they saw before: OnCreate, OnUpdate, OnResume, Reconcile and Timer.
type FieldsOption interface {
	CreateOption
	UpdateOption
	ResumeOption
	ReconcileOption
	TimerOption
}

// FinalizerOption is an option of the verbs that add a finalizer: OnDelete and Daemon.
type FinalizerOption interface {
	DeleteOption
	DaemonOption
}

// PermissionOption asks for permissions: it is an option of New and of every verb.
type PermissionOption interface {
	OperatorOption
	HandlerOption
	EventOption
}

// CreateOption is an option of OnCreate.
type CreateOption interface{ ofCreate() }

// UpdateOption is an option of OnUpdate and OnField.
type UpdateOption interface{ ofUpdate() }

// DeleteOption is an option of OnDelete.
type DeleteOption interface{ ofDelete() }

// ResumeOption is an option of OnResume.
type ResumeOption interface{ ofResume() }

// EventOption is an option of OnEvent.
type EventOption interface{ ofEvent() }

// ReconcileOption is an option of Reconcile.
type ReconcileOption interface{ ofReconcile() }

// TimerOption is an option of Timer.
type TimerOption interface{ ofTimer() }

// DaemonOption is an option of Daemon.
type DaemonOption interface{ ofDaemon() }

// IndexOption is an option of Index.
type IndexOption interface{ ofIndex() }

// ApplyOption is an option of Change.Apply.
type ApplyOption interface{ ofApply() }

// option is behind all of these interfaces. The interface that a constructor returns says where its option can be given; the compiler
// refuses every other place.
type option struct {
	name     string
	operator func(*Operator) error
	kind     func(*kindSettings) error
	handler  func(*handlerSettings) error
	build    func(filterContext) (filter.Filter, error)
	apply    func(*applySettings) error
}

func (option) ofOperator()        {}
func (option) ofKind()            {}
func (option) ofCreate()          {}
func (option) ofUpdate()          {}
func (option) ofDelete()          {}
func (option) ofResume()          {}
func (option) ofEvent()           {}
func (option) ofReconcile()       {}
func (option) ofTimer()           {}
func (option) ofDaemon()          {}
func (option) ofIndex()           {}
func (option) ofApply()           {}
func (o option) asFilter() option { return o }

// optionsOf returns what is behind the options of one place. A nil option is an error.
func optionsOf[O any](given []O) ([]option, error) {
	var all []option
	var wrong error
	for i, one := range given {
		known, ok := any(one).(option)
		if !ok {
			wrong = errors.Join(wrong, fmt.Errorf("option %d is nil: leave it out", i+1))
			continue
		}
		all = append(all, known)
	}
	return all, wrong
}

type kindSettings struct{ gvk schema.GroupVersionKind }

type handlerSettings struct {
	context            filterContext
	fields             []object.Path
	changes            []filter.Change
	scope              []filter.Filter
	atCreation         bool
	noFinalizer        bool
	alsoDeleting       bool
	concurrency        int
	retries            retrySettings
	owns               []object.Path
	timing             timing
	related            []relatedKind
	stopGrace, abandon time.Duration
	attemptTimeout     time.Duration
	permissions        permissions
}

// take enters options, and returns what is wrong with them.
func (s *handlerSettings) take(options []option) error {
	var wrong error
	for _, one := range options {
		wrong = errors.Join(wrong, one.handler(s))
	}
	return wrong
}

// Scheme adds the types of an API package, usually with its AddToScheme. The built-in kinds are known without it.
func Scheme(add func(*runtime.Scheme) error) OperatorOption {
	return option{name: "Scheme", operator: func(op *Operator) error { return add(op.scheme) }}
}

// CRDs sets the YAML of the operator's CustomResourceDefinitions, usually embedded. The command crds of the operator's binary prints it. A text
// may have several documents, and several calls add up. YAML that is no CustomResourceDefinition is an error of Run.
func CRDs(yaml ...[]byte) OperatorOption {
	return option{name: "CRDs", operator: func(op *Operator) error {
		if err := op.crds.Add(yaml...); err != nil {
			op.undefined = errors.Join(op.undefined, fmt.Errorf("option CRDs: %w", err))
		}
		return nil
	}}
}

// Workers sets how many objects of one kind are handled at the same time. The default is 16, the minimum 1. One object is always handled
// by one worker.
func Workers(n int) OperatorOption {
	return option{name: "Workers", operator: func(op *Operator) error {
		if n < 1 {
			return fmt.Errorf("option Workers: must be at least 1, got %d", n)
		}
		op.settings.Workers = n
		return nil
	}}
}

// ShutdownTimeout sets how long running handlers may go on after the operator receives a stop signal, before their
// context ends. What they return within three seconds after that is still saved. The default is 25 seconds, which fits into a
// pod's usual 30.
func ShutdownTimeout(d time.Duration) OperatorOption {
	return option{name: "ShutdownTimeout", operator: func(op *Operator) error {
		if d < 0 {
			return fmt.Errorf("option ShutdownTimeout: must not be negative, got %s", d)
		}
		op.settings.Grace = d
		return nil
	}}
}

// Namespaces sets the namespaces to serve, by names or patterns that work as in Kopf. The default is all namespaces.
//
// A pattern is a list of globs, with * and ?, separated by commas. The first glob selects namespaces. After it, a glob with ! removes
// namespaces, and one without ! adds them again: "app-*,!app-x*". A list whose first glob begins with ! starts from all namespaces. Einmal
// serves a namespace that any of the patterns matches, from the time when it appears until it is gone.
//
// Each namespace has a watch of its own, so permissions in the single namespaces are enough. If a kind may not be watched in a namespace,
// Einmal logs and counts that, and tries again. To find the namespaces that match a pattern, the operator needs permission to list and
// watch namespaces. Without it, Einmal serves only those that are named in full.
func Namespaces(patterns ...string) OperatorOption {
	return option{name: "Namespaces", operator: func(op *Operator) error {
		parsed, err := filter.ParseNamespaces(patterns...)
		if err != nil {
			return fmt.Errorf("option Namespaces: %w", err)
		}
		op.settings.Namespaces = parsed
		return nil
	}}
}

// StateNamespace sets the namespace of the operator's Lease and of the ConfigMap, named after the operator's identity, in which the operator
// keeps its watermarks: the creation times up to which every object has had a record. With them, an object that loses its record while the
// operator is down is not treated as a new one. The operator needs permission to get, create and patch the ConfigMap. The default is the
// namespace of the operator's own pod. Outside of a pod there is no default: no watermarks are kept, and leader election is an error of Run.
//
// An operator that handles Secrets also keeps a key there, in a Secret of the same name: see For.
func StateNamespace(name string) OperatorOption {
	return option{name: "StateNamespace", operator: func(op *Operator) error {
		op.settings.Home = name
		return nil
	}}
}

// ClockMargin sets how old an object must be before a watermark passes it. It must exceed the time by which clocks differ and watches lag. It
// need not exceed the time that objects wait in the queue or that handlers take. The default is ten minutes.
func ClockMargin(d time.Duration) OperatorOption {
	return option{name: "ClockMargin", operator: func(op *Operator) error {
		if d < 0 {
			return fmt.Errorf("option ClockMargin: must not be negative, got %s", d)
		}
		op.settings.Margin = d
		return nil
	}}
}

// RequestTimeout sets how long the API server may take to answer a request completely. After that the request fails
// with an error for which apierrors.IsServiceUnavailable reports true, and is retried like other failures. The request may have been carried
// out. The default is 70 seconds, just above the 60 seconds after which an API server ends a request itself. The minimum is one second.
//
// Watches, exec, port-forward and logs have no deadline. A watch that delivers nothing for three minutes, not even a bookmark, is opened again.
func RequestTimeout(d time.Duration) OperatorOption {
	return option{name: "RequestTimeout", operator: func(op *Operator) error {
		if d < time.Second {
			return fmt.Errorf("option RequestTimeout: must be at least 1s, got %s", d)
		}
		op.deadlines.Request = d
		return nil
	}}
}

// Logger sets where the operator and its handlers log. The default is slog's default logger, and with Main a logger to standard error that the
// flags -log-format and -log-level describe. With the option, Main refuses these flags.
func Logger(log *slog.Logger) OperatorOption {
	return option{name: "Logger", operator: func(op *Operator) error {
		if log == nil {
			return fmt.Errorf("option Logger: the logger is nil")
		}
		op.logTo(log.Handler())
		op.ownLogger = true
		return nil
	}}
}

// GVK sets the group, version and kind of objects whose Go type does not define them: Resource and unstructured.Unstructured. For other
// types it can be left out, and must be the one under which the type is registered in the scheme.
func GVK(group, version, kind string) KindOption {
	return option{name: "GVK", kind: func(settings *kindSettings) error {
		settings.gvk = schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
		return nil
	}}
}

// Concurrency sets how many items of an Each run at the same time. The default is 8, the minimum 1.
func Concurrency(n int) RecordedOption {
	return option{name: "Concurrency", handler: func(settings *handlerSettings) error {
		if n < 1 {
			return fmt.Errorf("option Concurrency: must be at least 1, got %d", n)
		}
		settings.concurrency = n
		return nil
	}}
}
