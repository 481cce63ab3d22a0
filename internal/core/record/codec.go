package record

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json"
)

// MessageLimit is the most bytes of an error text that a record keeps.
const MessageLimit = 256

// ErrNewer tells of a record that a newer release has written: an older one must leave the object alone.
var ErrNewer = errors.New("the record was written by a newer release of the operator: run that one")

// Encode writes the record as one line of JSON. Equal records give equal text.
func (r Record) Encode() (string, error) {
	text, err := plainJSON(r)
	if err != nil {
		return "", fmt.Errorf("encode the record of %s: %w", r.UID, err)
	}
	return string(text), nil
}

// Decode reads what Encode wrote. Text that is no record, or of a newer version, is an error.
func Decode(text string) (Record, error) {
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("not a record: %w", err)
	}
	if r.Version < 1 || r.UID == "" {
		return Record{}, fmt.Errorf("not a record: no version or uid")
	}
	if r.Version > Version {
		return Record{}, fmt.Errorf("%w: version %d, but this release reads up to %d", ErrNewer, r.Version, Version)
	}
	return r, nil
}

// Shorten cuts a message to MessageLimit bytes at a character's border.
func Shorten(message string) string {
	const mark = "…"
	if len(message) <= MessageLimit {
		return message
	}
	end := MessageLimit - len(mark)
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + mark
}
