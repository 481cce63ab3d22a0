// Package reconciler reconciles the objects of one kind. It takes one object at a time: reads it, lets the core decide what is to be done, calls handlers, and
// writes what came of it.
//
// The queue gives each object to one worker at a time. A handler that can be interrupted, and each daemon, runs in a goroutine of its own.
package reconciler
