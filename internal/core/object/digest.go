package object

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// digestBytes is the length of a digest: 80 bits, so that two of the few essences of one object never meet. A keyed one
// has keyedBytes, and names its key by keyNameBytes.
const (
	digestBytes  = 10
	keyedBytes   = 16
	keyNameBytes = 4
)

// Digest is a short fingerprint of a decoded JSON value. Equal values have equal digests.
func Digest(value any) string {
	sum := sha256.Sum256(encoded(value))
	return hex.EncodeToString(sum[:digestBytes])
}

// encoded is a decoded JSON value as text; equal values give equal text.
func encoded(value any) []byte {
	// Map keys are sorted by the encoder, and an int64 and a float64 of the same whole value print alike.
	text, err := json.Marshal(value)
	if err != nil {
		// Only values that never came from JSON (channels, NaN) get here; they are equal to nothing but their print.
		text = fmt.Appendf(nil, "%#v", value)
	}
	return text
}

// Digester makes the digests of one kind. The zero value makes plain ones, by which a value that can be guessed can be
// found. With a key nobody else can try values out.
type Digester struct {
	key  []byte
	name string
}

// Keyed makes digests with a key (HMAC-SHA256). They begin with a short name of the key, so that those of another key
// are not taken for those of another value.
func Keyed(key []byte) Digester {
	name := sha256.Sum256(append([]byte("name of a digest key: "), key...))
	return Digester{key: key, name: hex.EncodeToString(name[:keyNameBytes]) + "."}
}

// HasKey tells whether the digests are keyed.
func (d Digester) HasKey() bool { return len(d.key) > 0 }

// Of is the digest of a value of the object with this uid. Keyed digests of equal values of two objects differ, so that
// nobody sees that two Secrets hold the same.
func (d Digester) Of(uid string, value any) string {
	if !d.HasKey() {
		return Digest(value)
	}
	sum := hmac.New(sha256.New, d.key)
	_, _ = sum.Write([]byte(uid + "\x00")) // A hash does not fail.
	_, _ = sum.Write(encoded(value))
	return d.name + hex.EncodeToString(sum.Sum(nil)[:keyedBytes])
}

// Made tells whether the digest was made with this key: another one cannot be compared.
func (d Digester) Made(digest string) bool {
	return !d.HasKey() || strings.HasPrefix(digest, d.name)
}
