// Package word holds the word that greets.
package word

import (
	_ "embed"
	"strings"
)

//go:embed word.txt
var text string

// Word returns the word.
func Word() string { return "Well " + strings.TrimSpace(text) }
