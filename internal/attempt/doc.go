// Package attempt has what passes between a handler and the reconciliation that calls it: the call, the steps and effects of the handler, and the mailbox
// with which a handler that goes on tells what has happened.
//
// It starts no goroutine. A handler and the goroutines of its items use one Steps at the same time as the reconciliation that saves them; the lock of the
// mailbox guards both.
package attempt
