package redact_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/einmal-operators/einmal/internal/core/redact"
)

// Scenario 106 (docs/concepts/scenarios.md): a message of 5000 characters is cut to 1024, with an ellipsis in the middle.
func TestTheMiddleOfALongTextIsCutOut(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"short":          {"all is well", "all is well"},
		"just fits":      {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"too long":       {strings.Repeat("a", 2500) + strings.Repeat("z", 2500), strings.Repeat("a", 511) + "..." + strings.Repeat("z", 510)},
		"two bytes each": {strings.Repeat("ä", 600), strings.Repeat("ä", 255) + "..." + strings.Repeat("ä", 255)},
		"not UTF-8":      {"a\xffb", "a?b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := redact.Shorten(test.message, 1024)
			if got != test.want || len(got) > 1024 || !utf8.ValidString(got) {
				t.Errorf("got %d bytes: %q", len(got), got)
			}
		})
	}
}
