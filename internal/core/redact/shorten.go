package redact

import (
	"strings"
	"unicode/utf8"
)

// ellipsis replaces what Shorten cuts out.
const ellipsis = "..."

// Shorten cuts out the middle of a text that is longer than limit, in bytes, because its beginning and its end say most. Invalid UTF-8 becomes a
// question mark.
func Shorten(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	kept := limit - len(ellipsis)
	head, tail := (kept+1)/2, len(text)-kept/2
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + ellipsis + text[tail:]
}
