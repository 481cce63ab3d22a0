// Package scripts_test runs scenarios that are written as scripts: those of testdata, for operators that the tests declare.
package scripts_test

import (
	"flag"
	"testing"

	"github.com/einmal-operators/einmal/test/fixture"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite what the scripts expect, where it is not so")
	fixture.SilenceLibraries()
	m.Run()
}
