package record

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	stdjson "encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// EssenceLimit is the maximum number of bytes of one essence in a record. Of a larger one only digests are kept, so that the record
// never makes an object too large to be handled.
const EssenceLimit = 32 << 10

// packFrom is the size from which an essence is compressed, if that saves enough.
const packFrom = 1 << 10

// stored is the encoded form of an essence: plain, packed, or as digests. An empty map of views is written too: without it, the
// essence would be read as an empty one. Unread means that the essence was too large to be read, so that there are no views either.
type stored struct {
	Digest string            `json:"digest"`
	Body   object.Body       `json:"essence,omitempty"`
	Packed string            `json:"packed,omitempty"`
	Views  map[string]string `json:"views,omitzero"`
	Unread bool              `json:"unread,omitempty"`
	Status []string          `json:"status,omitempty"`
}

// MarshalJSON encodes the essence, packed if that saves a quarter of its size.
func (e Essence) MarshalJSON() ([]byte, error) {
	text, _, err := e.encode()
	return text, err
}

// encode returns what MarshalJSON returns, and the body as plain JSON.
func (e Essence) encode() (text, plain []byte, err error) {
	if plain, err = plainJSON(e.Body); err != nil {
		return nil, nil, fmt.Errorf("encode an essence: %w", err)
	}
	written := stored{Digest: e.Digest, Body: e.Body, Views: e.Views, Status: e.Status}
	if e.Unread() {
		written.Views, written.Unread = map[string]string{}, true
	}
	if len(plain) >= packFrom {
		if packed := pack(plain); len(packed) < len(plain)*3/4 {
			written.Body, written.Packed = nil, packed
		}
	}
	text, err = plainJSON(written)
	return text, plain, err
}

// Unread reports whether only the digest of the essence is known, because the essence was too large to be read.
func (e Essence) Unread() bool { return e.Body == nil && e.Views == nil }

// read decodes an essence. Of one for which there is not enough memory left, only the digest is read.
func (s stored) read(memory *budget) (Essence, error) {
	e := Essence{Digest: s.Digest, Body: s.Body, Views: s.Views, Status: s.Status}
	switch {
	case s.Unread:
		e.Body, e.Views = nil, nil
	case s.Packed != "":
		plain, ok, err := memory.unpack(s.Packed)
		if err != nil {
			return Essence{}, fmt.Errorf("unpack an essence: %w", err)
		}
		if !ok {
			return Essence{Digest: s.Digest}, nil
		}
		if err := json.Unmarshal(plain, &e.Body); err != nil {
			return Essence{}, fmt.Errorf("decode an unpacked essence: %w", err)
		}
	case e.Body == nil && e.Views == nil:
		e.Body = object.Body{} // An object without any essence has an empty one.
	}
	return e, nil
}

// fits reports whether an essence can be stored, and read again, as a whole.
func (e Essence) fits() bool {
	text, plain, err := e.encode() // An essence that cannot be encoded is not kept either.
	return err == nil && len(text) <= EssenceLimit && len(plain) <= unpackLimit && memoryOf(plain) <= essenceMemoryLimit
}

// plainJSON returns JSON without the escapes that only HTML needs.
func plainJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := stdjson.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

func pack(plain []byte) string {
	var packed bytes.Buffer
	// The compression level is valid, and a buffer in memory does not fail.
	writer, _ := flate.NewWriter(&packed, flate.BestCompression)
	_, _ = writer.Write(plain)
	_ = writer.Close()
	return base64.RawStdEncoding.EncodeToString(packed.Bytes())
}
