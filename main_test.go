package einmal_test

import (
	"testing"

	"github.com/einmal-operators/einmal/test/fixture"
)

func TestMain(m *testing.M) {
	fixture.SilenceLibraries()
	m.Run()
}
