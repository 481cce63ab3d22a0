// Package notice adapts the Kubernetes events that operators send to the limits of the API server.
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

// The types of events. The API server accepts no others.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// ellipsis replaces the part that is cut out of a text. unnamed is the reason of an event without one.
const (
	ellipsis = "..."
	unnamed  = "Unspecified"
)

// Notice is the content of a Kubernetes event.
type Notice struct {
	// Type is Normal or Warning. Reason is one word for programs. Action is the id of the handler that sends the event.
	Type, Reason, Action string
	// Note is the text for people.
	Note string
}

// New returns a notice that the API server accepts. Any type except Normal becomes Warning, the reason becomes one word, and
// the middle of a long note is cut out.
func New(kind, reason, action, note string) Notice {
	if kind != Normal {
		kind = Warning
	}
	return Notice{Type: kind, Reason: word(reason), Action: action, Note: cut(strings.ToValidUTF8(note, "?"))}
}

// word joins the letters and digits of a text into one word: "volume created" becomes VolumeCreated.
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

// cut removes the middle of a text that is too long, because its beginning and its end are most informative.
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
