//go:build race

package record_test

// mostMemory is how many MiB the reading of a hostile record may allocate: with the race detector, allocations are larger.
const mostMemory = 80
