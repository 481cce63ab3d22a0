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

// Option changes a default. Each says where it goes: to New, to For, to a handler's verb, or to Apply. An option in the wrong
// place is a registration mistake, which Run reports.
type Option struct {
	name     string
	operator func(*Operator) error
	kind     func(*kindSettings) error
	handler  func(*handlerSettings) error
	filter   func(filterContext) (filter.Filter, error)
	apply    func(*applySettings)
}

type kindSettings struct{ gvk schema.GroupVersionKind }

type handlerSettings struct {
	context                 filterContext
	fields                  []object.Path
	changes                 []filter.Change
	scope                   []filter.Filter
	atCreation              bool
	saveFirst, countCrashes bool
	optional, alsoDeleting  bool
	concurrency             int
	retries                 retrySettings
	owns                    []object.Path
	timing                  timing
	related                 []relatedKind
	stopGrace, abandon      time.Duration
}

type applySettings struct{ adopt bool }

// Scheme is an option of New: it adds the types of an API package, usually with its AddToScheme. The built-in kinds
// are there already.
func Scheme(add func(*runtime.Scheme) error) Option {
	return Option{name: "Scheme", operator: func(op *Operator) error { return add(op.scheme) }}
}

// CRDs is an option of New: the YAML of the operator's CustomResourceDefinitions, usually embedded, which the verb
// crds of the operator's binary prints. Several documents, and several calls, are joined.
func CRDs(yaml ...[]byte) Option {
	return Option{name: "CRDs", operator: func(op *Operator) error {
		op.crds = append(op.crds, yaml...)
		op.undefined = errors.Join(op.undefined, op.define(yaml))
		return nil
	}}
}

// Workers is an option of New: how many objects of one kind are handled at the same time. The default is 16. One
// object is always handled by one worker.
func Workers(n int) Option {
	return Option{name: "Workers", operator: func(op *Operator) error {
		if n < 1 {
			return fmt.Errorf("option Workers: %d is no number of workers, give at least 1", n)
		}
		op.settings.Workers = n
		return nil
	}}
}

// Grace is an option of New: how long running handlers may go on after the operator is told to stop, before their
// context ends. What they return within three seconds after that is still saved. The default is 25 seconds, which fits into a
// pod's usual 30.
func Grace(d time.Duration) Option {
	return Option{name: "Grace", operator: func(op *Operator) error {
		if d < 0 {
			return fmt.Errorf("option Grace: %s is below zero", d)
		}
		op.settings.Grace = d
		return nil
	}}
}

// Namespaces is an option of New: the namespaces to serve, by names or patterns, as Kopf reads them. The default is all.
//
// A pattern is a list of globs, with * and ?, separated by commas. The first decides who may be in; after it one with ! takes
// namespaces out, and one without takes such in again: "app-*,!app-x*". One that begins with ! begins with all namespaces. A
// namespace is served that any of the patterns matches, from when it appears until it is gone.
//
// Each namespace is watched by itself, so rights in the single namespaces are enough. One in which a kind may not be watched is left out,
// which is logged and counted, and tried again. To find the namespaces that match, the operator needs the right to list and
// watch namespaces; without it only those are served that are named outright. In a manager of your own see NewCache.
func Namespaces(patterns ...string) Option {
	return Option{name: "Namespaces", operator: func(op *Operator) error {
		parsed, err := filter.ParseNamespaces(patterns...)
		if err != nil {
			return fmt.Errorf("option Namespaces: %w", err)
		}
		op.settings.Namespaces = parsed
		return nil
	}}
}

// StateNamespace is an option of New: the namespace of the ConfigMap, named after the operator's identity, in which the
// operator keeps its watermarks: the creation times up to which every object has had a record. With them an object that
// loses its record while the operator is down is not taken for a new one. The operator needs the right to get, create and
// patch the ConfigMap. The default is the namespace of the operator's own pod; outside of a pod nothing is kept.
//
// An operator that handles Secrets also keeps a key there, in a Secret of the same name: see For.
func StateNamespace(name string) Option {
	return Option{name: "StateNamespace", operator: func(op *Operator) error {
		op.settings.Home = name
		return nil
	}}
}

// ClockMargin is an option of New: how old an object must be before a watermark passes it. It must exceed the time by
// which clocks differ and watches lag. It need not exceed the time that objects wait in the queue or that handlers take. The
// default is ten minutes.
func ClockMargin(d time.Duration) Option {
	return Option{name: "ClockMargin", operator: func(op *Operator) error {
		if d < 0 {
			return fmt.Errorf("option ClockMargin: %s is below zero", d)
		}
		op.settings.Margin = d
		return nil
	}}
}

// Deadline is an option of New: how long one attempt of a handler may take before its context ends. The default is ten
// minutes.
func Deadline(d time.Duration) Option {
	return Option{name: "Deadline", operator: func(op *Operator) error {
		if d <= 0 {
			return fmt.Errorf("option Deadline: %s leaves handlers no time", d)
		}
		op.settings.Deadline = d
		return nil
	}}
}

// RequestTimeout sets how long the API server may take to answer a request completely. It is an option of New. After that the request fails
// with an error for which apierrors.IsServiceUnavailable reports true, and is retried like other failures. The request may have been carried
// out. The default is 70 seconds, just above the 60 seconds after which an API server ends a request itself. The minimum is one second.
//
// Watches, exec, port-forward and logs have no deadline. A watch that delivers nothing for three minutes, not even a bookmark, is opened again.
func RequestTimeout(d time.Duration) Option {
	return Option{name: "RequestTimeout", operator: func(op *Operator) error {
		if d < time.Second {
			return fmt.Errorf("option RequestTimeout: must be at least 1s, got %s", d)
		}
		op.deadlines.Request = d
		return nil
	}}
}

// Logger is an option of New: where the operator logs. The default is slog's default logger; Main sets one by its
// flags.
func Logger(log *slog.Logger) Option {
	return Option{name: "Logger", operator: func(op *Operator) error {
		if log == nil {
			return fmt.Errorf("option Logger: the logger is nil")
		}
		op.settings.Log = log
		return nil
	}}
}

// GVK is an option of For: the group, version and kind of objects whose Go type does not tell: a Resource or
// unstructured.Unstructured. For any other type it must be what the type's package says.
func GVK(group, version, kind string) Option {
	return Option{name: "GVK", kind: func(settings *kindSettings) error {
		settings.gvk = schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
		return nil
	}}
}

// SaveFirst is an option of a handler: what earlier handlers of the same pass have done is saved before this one
// starts. Without it that is saved at the end of the pass, or half a second after it was done, whichever comes first.
func SaveFirst() Option {
	return Option{name: "SaveFirst", handler: func(settings *handlerSettings) error {
		settings.saveFirst = true
		return nil
	}}
}

// CountCrashes is an option of a handler: each attempt is written down before it is made, so that one which ends the
// process counts, and is backed off from. If it cannot be written down, the attempt does not begin and does not count. It costs one write for each attempt.
func CountCrashes() Option {
	return Option{name: "CountCrashes", handler: func(settings *handlerSettings) error {
		settings.countCrashes = true
		return nil
	}}
}

// Concurrency is an option of a handler: how many items of an Each run at the same time. The default is 8.
func Concurrency(n int) Option {
	return Option{name: "Concurrency", handler: func(settings *handlerSettings) error {
		if n < 1 {
			return fmt.Errorf("option Concurrency: %d is no number of items, give at least 1", n)
		}
		settings.concurrency = n
		return nil
	}}
}

// Adopt is an option of Apply: take over an object that exists without the owner's reference.
func Adopt() Option {
	return Option{name: "Adopt", apply: func(settings *applySettings) { settings.adopt = true }}
}

func (o Option) misplaced(where string) error {
	return fmt.Errorf("option %s does not belong to %s", o.name, where)
}
