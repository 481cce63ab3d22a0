// Package virtual_test has the tests of the library in virtual time, on an API server in memory: a file for each subject, such as deletion_test.go.
package virtual_test

import (
	"testing"

	"github.com/einmal-operators/einmal/test/fixture"
)

func TestMain(m *testing.M) {
	fixture.SilenceLibraries()
	m.Run()
}
