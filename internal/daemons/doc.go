// Package daemons runs the daemons of the objects of one kind: each in a goroutine of its own, as long as its object exists and matches.
//
// A reconciliation starts and stops the daemons of its object. What a daemon changes, it hands in for the next reconciliation, which writes it.
package daemons
