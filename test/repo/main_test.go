// Package repo_test checks the repository: imports, the size of files, and that pages name what there is.
package repo_test

import (
	"flag"
	"os"
	"testing"
)

// The tests read files of the whole repository, by their paths in it.
func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the index of the API, where it differs")
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	m.Run()
}
