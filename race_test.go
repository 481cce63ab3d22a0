//go:build race

package einmal_test

// objects is how many objects there are at a start: with the race detector, which costs much, fewer.
const objects = 1_000
