//go:build race

package virtual_test

// objects is how many objects there are at a start: with the race detector, which costs much, fewer.
const objects = 1_000

// guardedObjects is how many objects have a daemon for a day.
const guardedObjects = 100
