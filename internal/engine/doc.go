// Package engine runs an operator: it waits until kinds are served, watches their objects, and queues those that are to be reconciled.
package engine
