// Package engine reconciles objects: it takes one object at a time, decides in the core what is to be done, and does it.
package engine
