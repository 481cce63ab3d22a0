package record

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json"
)

// MessageLimit is the maximum number of bytes of an error text in a record.
const MessageLimit = 256

// ErrNewer reports a record that was written by a newer release. An older release must not touch the object.
var ErrNewer = errors.New("the record was written by a newer release of the operator; run that release")

// Encode returns the record as one line of JSON. Equal records give equal text.
func (r Record) Encode() (string, error) {
	text, err := plainJSON(r)
	if err != nil {
		return "", fmt.Errorf("encode record of object with uid %s: %w", r.UID, err)
	}
	return string(text), nil
}

// Decode parses what Encode returned. It fails for text that is not a record and for a newer version.
func Decode(text string) (Record, error) {
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("not a record: %w", err)
	}
	if r.Version < 1 || r.UID == "" {
		return Record{}, fmt.Errorf("not a record: version or uid is missing")
	}
	if r.Version > Version {
		return Record{}, fmt.Errorf("%w: it has version %d, this release supports up to %d", ErrNewer, r.Version, Version)
	}
	return r, nil
}

// Shorten cuts a message to MessageLimit bytes, at a character boundary.
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
