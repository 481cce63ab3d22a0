package record

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	stdjson "encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// EssenceLimit is the most bytes that one essence may take in a record. Of a larger one only digests are kept: an object
// must never become too large to be handled by what is remembered of it.
const EssenceLimit = 32 << 10

// packFrom is the size from which an essence is compressed, if that pays.
const packFrom = 1 << 10

// unpackLimit is the most that a compressed essence may unpack to; no object of an API server is as large.
const unpackLimit = 16 << 20

// stored is how an essence is written: as it is, packed, or as digests. Views that nobody has are written too: without
// them it would be an empty essence.
type stored struct {
	Digest string            `json:"digest"`
	Body   object.Body       `json:"essence,omitempty"`
	Packed string            `json:"packed,omitempty"`
	Views  map[string]string `json:"views,omitzero"`
	Status []string          `json:"status,omitempty"`
}

// MarshalJSON writes the essence, packed when that saves a quarter of its size.
func (e Essence) MarshalJSON() ([]byte, error) {
	plain, err := plainJSON(e.Body)
	if err != nil {
		return nil, fmt.Errorf("encode an essence: %w", err)
	}
	written := stored{Digest: e.Digest, Body: e.Body, Views: e.Views, Status: e.Status}
	if len(plain) >= packFrom {
		if packed := pack(plain); len(packed) < len(plain)*3/4 {
			written.Body, written.Packed = nil, packed
		}
	}
	return plainJSON(written)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Essence) UnmarshalJSON(text []byte) error {
	var read stored
	if err := json.Unmarshal(text, &read); err != nil {
		return fmt.Errorf("decode an essence: %w", err)
	}
	e.Digest, e.Body, e.Views, e.Status = read.Digest, read.Body, read.Views, read.Status
	if read.Packed == "" {
		if e.Body == nil && e.Views == nil {
			e.Body = object.Body{} // An object without any essence has an empty one.
		}
		return nil
	}
	plain, err := unpack(read.Packed)
	if err != nil {
		return fmt.Errorf("unpack an essence: %w", err)
	}
	if err := json.Unmarshal(plain, &e.Body); err != nil {
		return fmt.Errorf("decode an unpacked essence: %w", err)
	}
	return nil
}

// size is how many bytes the essence takes in a record.
func (e Essence) size() int {
	text, err := e.MarshalJSON()
	if err != nil {
		return EssenceLimit + 1 // What cannot be written is not kept.
	}
	return len(text)
}

// plainJSON writes JSON without the escapes that only HTML needs.
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
	// Neither a level that exists nor a buffer in memory can fail.
	writer, _ := flate.NewWriter(&packed, flate.BestCompression)
	_, _ = writer.Write(plain)
	_ = writer.Close()
	return base64.RawStdEncoding.EncodeToString(packed.Bytes())
}

func unpack(text string) ([]byte, error) {
	packed, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), unpackLimit+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > unpackLimit {
		return nil, fmt.Errorf("more than %d bytes", unpackLimit)
	}
	return plain, nil
}
