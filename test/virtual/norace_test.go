//go:build !race

package virtual_test

// objects is how many objects there are at a start.
const objects = 10_000

// guardedObjects is how many objects have a daemon for a day.
const guardedObjects = 1_000
