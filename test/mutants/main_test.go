// Package mutants_test injects known bugs into the library and checks that a test catches each of them.
package mutants_test

import (
	"fmt"
	"os"
	"testing"
)

// The tests read files of the whole repository, by their paths in it.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}
