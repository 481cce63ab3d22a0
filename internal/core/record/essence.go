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

// EssenceLimit is the maximum number of bytes of one essence in a record. Of a larger one only digests are kept, so that the record
// never makes an object too large to be handled.
const EssenceLimit = 32 << 10

// packFrom is the size from which an essence is compressed, if that saves enough.
const packFrom = 1 << 10

// unpackLimit is the maximum size of an unpacked essence. No object in an API server is as large.
const unpackLimit = 16 << 20

// stored is the encoded form of an essence: plain, packed, or as digests. An empty map of views is written too: without it, the
// essence would be read as an empty one.
type stored struct {
	Digest string            `json:"digest"`
	Body   object.Body       `json:"essence,omitempty"`
	Packed string            `json:"packed,omitempty"`
	Views  map[string]string `json:"views,omitzero"`
	Status []string          `json:"status,omitempty"`
}

// MarshalJSON encodes the essence, packed if that saves a quarter of its size.
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

// UnmarshalJSON decodes what MarshalJSON returned.
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

// size returns the number of bytes that the essence takes in a record.
func (e Essence) size() int {
	text, err := e.MarshalJSON()
	if err != nil {
		return EssenceLimit + 1 // An essence that cannot be encoded is not kept.
	}
	return len(text)
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
