// Package einmal is a framework for Kubernetes operators written as handlers: on create, on update, on delete, on
// resume, on an event, for a state. What a handler has done is remembered durably in the object itself, so that what has been done once is not
// done again after a restart, a re-apply, a replaced manifest or a crash.
//
// The promise, in exact words: a handler runs at least once; its recorded outcome is durable; after a crash it can run
// again. Write handlers so that a second run does no harm: apply whole desired children with [Change.Apply], and
// store generated values before anything outside hears of them.
//
// Start with [New], declare kinds with [For] and handlers with the verbs of [Kind], and end main with
// [Operator.Main].
package einmal
