//go:build race

package einmaltest

// raceDetector reports whether this program has the race detector.
const raceDetector = true
