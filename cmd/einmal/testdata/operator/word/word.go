// Package word provides the greeting of the test operator.
package word

import (
	_ "embed"
	"strings"
)

//go:embed word.txt
var text string

// Word returns the greeting.
func Word() string { return "Well " + strings.TrimSpace(text) }
