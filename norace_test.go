//go:build !race

package einmal_test

// objects is how many objects there are at a start.
const objects = 10_000
