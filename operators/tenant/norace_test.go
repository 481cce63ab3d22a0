//go:build !race

package main

// raceDetector reports whether the test has the race detector.
const raceDetector = false
