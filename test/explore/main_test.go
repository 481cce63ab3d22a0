// Package explore_test plays lives of objects with every fault that can happen, and compares how they end.
package explore_test

import (
	"testing"

	"github.com/einmal-operators/einmal/test/fixture"
)

func TestMain(m *testing.M) {
	fixture.SilenceLibraries()
	m.Run()
}
