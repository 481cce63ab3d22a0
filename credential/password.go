package credential

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
)

// Redacted is how a Password shows itself.
const Redacted = "***"

// The passwords that are generated: of letters and digits, so that every system takes them and no URL needs to quote them.
const (
	alphabet       = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	passwordLength = 32
)

// Password hides itself: printed, logged or encoded as JSON it is Redacted. The zero value is none.
type Password struct{ text string }

// NewPassword hides a text.
func NewPassword(text string) Password { return Password{text} }

// Generate makes a password by chance: 32 letters and digits, which is 190 bits.
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

// Reveal returns the text. Hand it to what needs it, and to nothing else.
func (p Password) Reveal() string { return p.text }

// IsZero tells that there is no password.
func (p Password) IsZero() bool { return p.text == "" }

// String is Redacted.
func (Password) String() string { return Redacted }

// GoString is Redacted.
func (Password) GoString() string { return Redacted }

// Format writes Redacted, whatever the verb.
func (Password) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, Redacted) }

// LogValue is Redacted.
func (Password) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalText gives Redacted, to JSON and YAML too.
func (Password) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// UnmarshalText refuses: what a password was written as is not the password.
func (*Password) UnmarshalText([]byte) error {
	return errors.New("a password hides itself when it is encoded, so it cannot be decoded: read it from its store")
}
