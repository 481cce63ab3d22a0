package einmal_test

import "github.com/einmal-operators/einmal/test/fixture"

// The kinds of the examples.
type (
	// Widget is a kind with a size, a color and tags in its spec and a phase in its status.
	Widget = fixture.Widget
	// Account is how another system knows an object.
	Account = fixture.Account
)
