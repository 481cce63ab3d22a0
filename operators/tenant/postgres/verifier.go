package postgres

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/einmal-operators/einmal/credential"
)

// The parameters of a verifier: the defaults of PostgreSQL (scram_iterations, SCRAM_DEFAULT_SALT_LEN).
const (
	iterations = 4096
	saltLength = 16
)

// newVerifier computes what PostgreSQL stores of a password, so that the server never receives the password itself. A password with
// characters other than printable ASCII is credential.ErrInvalid, because servers and clients normalize such passwords differently
// (SASLprep, RFC 4013).
func newVerifier(password credential.Password) (string, error) {
	salt := make([]byte, saltLength)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("generate a salt: %w", err)
	}
	return verifier(password, salt)
}

// verifier returns the SCRAM-SHA-256 verifier of a password (RFC 5803, RFC 7677; pg_authid in the PostgreSQL documentation).
func verifier(password credential.Password, salt []byte) (string, error) {
	text := password.Reveal()
	if text == "" {
		return "", fmt.Errorf("the password is empty: %w", credential.ErrInvalid)
	}
	for _, r := range []byte(text) {
		if r < ' ' || r > '~' {
			return "", fmt.Errorf("the password has characters that are not printable ASCII: %w", credential.ErrInvalid)
		}
	}
	salted, err := pbkdf2.Key(sha256.New, text, salt, iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("hash the password: %w", err)
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(stored[:]), encode(mac(salted, "Server Key"))), nil
}

func mac(key []byte, text string) []byte {
	sum := hmac.New(sha256.New, key)
	_, _ = sum.Write([]byte(text))
	return sum.Sum(nil)
}
