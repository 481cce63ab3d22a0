// Package einmal is a framework for Kubernetes operators that are written as handlers: on create, on update, on delete, on resume, on an event,
// for a state. What a handler has done is recorded in the object itself. It is not done again after a restart, a re-apply, a replaced
// manifest or a crash.
//
// # The promise
//
// A handler runs at least once. Its recorded outcome is durable. After a crash it can run again, so write handlers such that a second run
// does no harm: apply whole desired children with [Change.Apply], and store generated values before any outside system gets them. What
// must happen once outside of the cluster goes into an [Effect].
//
// # A first operator
//
// [New] makes an operator with an identity of its own. [For] declares a kind; [ForEvery] declares handlers for kinds that are chosen at run time. The
// verbs of [Kind] declare handlers. [Operator.Main] is the main function: it has the commands run, crds, rbac, uninstall and version.
//
//	op := einmal.New("websites.example.com")
//	websites := einmal.For[Website](op, einmal.GVK("example.com", "v1", "Website"))
//	websites.OnCreate("register", register)
//	op.Main()
//
// # Verbs
//
// [Kind.OnCreate], [Kind.OnUpdate], [OnField], [Kind.OnDelete] and [Kind.OnResume] answer a cause once, and are recorded. [Kind.Reconcile] brings the
// world to a state whenever that or a related object changes: see [Owns] and [Watches]. [Kind.OnEvent] sees every watch event. [Kind.Timer]
// and [Kind.Daemon] run because time goes by, and as long as the object exists. [Operator.OnStartup], [Operator.OnCleanup] and
// [Operator.OnProbe] are about the operator itself.
//
// # In a handler
//
// [Change] has the object, the reason and the difference. Changes of Change.Object are written when the handler returns. [Step], [StepResult] and
// [Each] remember parts of a handler; [Effect] does something once outside of the cluster; [Memo] remembers in this process;
// [Index] looks objects up. [RetryAfter], [RequeueAfter] and [Permanent] say what happens next.
//
// # Options
//
// The type of an option is the place where it goes: [OperatorOption] for New, [KindOption] for For, [HandlerOption] and [Filter] for verbs, one type
// such as [TimerOption] for a single verb, [ApplyOption] for Apply. docs/reference/options.md has the table.
//
// # Terms
//
// The essence of an object is all that handlers compare by default: everything but the status and the bookkeeping in the metadata. The record is
// what the operator has stored in the object about its handlers: in the status if the type embeds [Records], else in an annotation.
// docs/glossary.md has all terms.
package einmal
