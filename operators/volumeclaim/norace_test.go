//go:build !race

package main

// schedules is how many schedules are explored: single faults, and then pairs of them.
const schedules = 1000
