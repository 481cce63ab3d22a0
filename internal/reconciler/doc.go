// Package reconciler reconciles the objects of one kind. It takes one object at a time: reads it, lets the core decide what is to be done, calls handlers, and
// writes what came of it.
//
// A loop takes the object through one reconciliation. The reader reads the object and finds what this process knows of it. The caller calls the handlers that
// are due, and the committer writes what was done and goes on from the answer. All of them work on one subject, in this order: none uses a later one.
//
// The queue gives each object to one worker at a time, so a subject needs no lock. A handler that can be interrupted, and each daemon, runs in a goroutine of
// its own.
package reconciler
