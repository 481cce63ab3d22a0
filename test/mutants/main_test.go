// Package mutants_test injects known bugs into the library and checks that a test catches each of them.
package mutants_test

import (
	"os"
	"testing"
)

// The tests read files of the whole repository, by their paths in it.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	m.Run()
}
