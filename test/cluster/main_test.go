// Package cluster_test has the tests of the library on a real control plane.
package cluster_test

import (
	"flag"
	"testing"

	"github.com/einmal-operators/einmal/test/fixture"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite testdata/commands")
	fixture.SilenceLibraries()
	m.Run()
}
