// Package notice gives the events that operators send the form that the API server accepts.
package notice

import (
	"strings"
	"unicode/utf8"
)

// The limits of the API server, in bytes.
const (
	longestNote   = 1024
	longestReason = 128
)

// The types of events. There are no others.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// ellipsis stands where something was cut out; unnamed is the reason of an event that has none.
const (
	ellipsis = "..."
	unnamed  = "Unspecified"
)

// Notice is what an event says.
type Notice struct {
	// Type is Normal or Warning, Reason one word for programs, Action the id of the handler that says it.
	Type, Reason, Action string
	// Note is for people.
	Note string
}

// New makes a notice that the API server accepts: any other type is a Warning, the reason becomes one word, and of a long
// note the middle is left out.
func New(kind, reason, action, note string) Notice {
	if kind != Normal {
		kind = Warning
	}
	return Notice{Type: kind, Reason: word(reason), Action: action, Note: cut(strings.ToValidUTF8(note, "?"))}
}

// word joins the letters and digits of a text into one word: "volume created" is VolumeCreated.
func word(text string) string {
	var joined strings.Builder
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return !plain(r) }) {
		joined.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	if joined.Len() == 0 {
		return unnamed
	}
	return joined.String()[:min(joined.Len(), longestReason)]
}

func plain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// cut leaves the middle of a text out that is too long: how it begins and how it ends tell most.
func cut(text string) string {
	if len(text) <= longestNote {
		return text
	}
	room := longestNote - len(ellipsis)
	head, tail := (room+1)/2, len(text)-room/2
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + ellipsis + text[tail:]
}
