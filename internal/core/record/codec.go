package record

import (
	"errors"
	"fmt"
	"slices"
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

// head is what every version of a record begins with.
type head struct {
	Version int    `json:"v"`
	UID     string `json:"uid"`
}

// Decode parses what Encode returned. It fails for text that is not a record, for a newer version, and for text that would take too much
// memory. Of essences that take too much memory together, the newest are read, and only the digests of the others.
func Decode(text string) (Record, error) {
	begin, err := headOf(text)
	if err != nil {
		return Record{}, err
	}
	return begin.decode([]byte(text))
}

// DecodeOf is Decode for a record of the object with this uid. Of a record of another object, it reads only to whom it belongs; ok is
// false then, without an error.
func DecodeOf(text, uid string) (r Record, ok bool, err error) {
	begin, err := headOf(text)
	if err != nil || begin.UID != uid {
		return Record{}, false, err
	}
	r, err = begin.decode([]byte(text))
	return r, err == nil, err
}

func headOf(text string) (head, error) {
	var begin head
	if err := json.Unmarshal([]byte(text), &begin); err != nil {
		return head{}, fmt.Errorf("not a record: %w", err)
	}
	if begin.Version < 1 || begin.UID == "" {
		return head{}, fmt.Errorf("not a record: version or uid is missing")
	}
	return begin, nil
}

// decode parses the whole record.
func (h head) decode(text []byte) (Record, error) {
	if h.Version > Version {
		return Record{}, fmt.Errorf("%w: it has version %d, this release supports up to %d", ErrNewer, h.Version, Version)
	}
	memory := &budget{left: memoryLimit}
	if !memory.take(text) {
		return Record{}, tooLarge(memoryOf(text))
	}
	type fields Record
	var all struct {
		fields
		Seen []stored `json:"seen"` // In place of Seen of the record.
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return Record{}, fmt.Errorf("not a record: %w", err)
	}
	r := Record(all.fields)
	if len(all.Seen) > 0 {
		r.Seen = make([]Essence, len(all.Seen))
	}
	for i, essence := range slices.Backward(all.Seen) {
		var err error
		if r.Seen[i], err = essence.read(memory); err != nil {
			return Record{}, fmt.Errorf("not a record: %w", err)
		}
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
