package object

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// digestBytes is the length of a digest: 80 bits, enough for the few essences of one object never to collide. A keyed digest
// has keyedBytes, and keyNameBytes that identify the key.
const (
	digestBytes  = 10
	keyedBytes   = 16
	keyNameBytes = 4
)

// Digest returns a short fingerprint of a decoded JSON value. Equal values have equal digests.
func Digest(value any) string {
	sum := sha256.Sum256(encoded(value))
	return hex.EncodeToString(sum[:digestBytes])
}

// encoded returns a decoded JSON value as text. Equal values give equal text.
func encoded(value any) []byte {
	// Map keys are sorted by the encoder, and an int64 and a float64 of the same whole value print alike.
	text, err := json.Marshal(value)
	if err != nil {
		// Only values that cannot come from JSON (channels, NaN) reach this; they equal only values that print alike.
		text = fmt.Appendf(nil, "%#v", value)
	}
	return text
}

// Digester makes the digests of one kind. The zero value makes plain digests, from which a guessable value can be recovered
// by trying candidates. A key prevents that.
type Digester struct {
	key  []byte
	name string
}

// Keyed returns a digester that uses a key (HMAC-SHA256). Its digests start with a short name of the key, so that a digest made
// with another key is not mistaken for one of another value.
func Keyed(key []byte) Digester {
	name := sha256.Sum256(append([]byte("name of a digest key: "), key...))
	return Digester{key: key, name: hex.EncodeToString(name[:keyNameBytes]) + "."}
}

// HasKey reports whether the digests are keyed.
func (d Digester) HasKey() bool { return len(d.key) > 0 }

// Of returns the digest of a value of the object with this uid. Keyed digests of equal values in two objects differ, so that
// they do not reveal that two Secrets hold the same value.
func (d Digester) Of(uid string, value any) string {
	if !d.HasKey() {
		return Digest(value)
	}
	sum := hmac.New(sha256.New, d.key)
	_, _ = sum.Write([]byte(uid + "\x00")) // A hash never returns an error.
	_, _ = sum.Write(encoded(value))
	return d.name + hex.EncodeToString(sum.Sum(nil)[:keyedBytes])
}

// Made reports whether the digest was made with this key. Digests made with another key cannot be compared.
func (d Digester) Made(digest string) bool {
	return !d.HasKey() || strings.HasPrefix(digest, d.name)
}
