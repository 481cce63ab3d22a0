package object

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// digestBytes is the length of a digest: 80 bits, so that two of the few essences of one object never meet.
const digestBytes = 10

// Digest is a short fingerprint of a decoded JSON value. Equal values have equal digests.
func Digest(value any) string {
	// Map keys are sorted by the encoder, and an int64 and a float64 of the same whole value print alike.
	text, err := json.Marshal(value)
	if err != nil {
		// Only values that never came from JSON (channels, NaN) get here; they are equal to nothing but their print.
		text = fmt.Appendf(nil, "%#v", value)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:digestBytes])
}
