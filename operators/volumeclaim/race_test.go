//go:build race

package main

// schedules is how many schedules are explored: with the race detector, which costs much, single faults only.
const schedules = 0
