package credential

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
)

// Redacted is the text that a Password shows when it is printed, logged or encoded.
const Redacted = "***"

// Generated passwords consist of letters and digits, so that every system accepts them and a URL needs no escaping.
const (
	alphabet       = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	passwordLength = 32
)

// Password holds a secret text. Printed, logged or encoded as JSON or YAML, it shows Redacted. The zero value is no password.
type Password struct{ text string }

// NewPassword returns a Password with this text.
func NewPassword(text string) Password { return Password{text} }

// Generate returns a random password of 32 letters and digits, with 190 bits of entropy.
func Generate() (Password, error) {
	text := make([]byte, passwordLength)
	for i := range text {
		chosen, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			return Password{}, fmt.Errorf("generate a password: %w", err)
		}
		text[i] = alphabet[chosen.Int64()]
	}
	return Password{string(text)}, nil
}

// Reveal returns the text. Pass it only to the system that needs it.
func (p Password) Reveal() string { return p.text }

// IsZero reports whether there is no password.
func (p Password) IsZero() bool { return p.text == "" }

// String returns Redacted.
func (Password) String() string { return Redacted }

// GoString returns Redacted.
func (Password) GoString() string { return Redacted }

// Format writes Redacted, for every verb of package fmt.
func (Password) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, Redacted) }

// LogValue returns Redacted.
func (Password) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalText returns Redacted. JSON and YAML encoders use it too.
func (Password) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// UnmarshalText always returns an error, because an encoded Password does not contain the password.
func (*Password) UnmarshalText([]byte) error {
	return errors.New("a password hides itself when it is encoded, so it cannot be decoded: read it from its store")
}
