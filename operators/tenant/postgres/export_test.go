package postgres

import "github.com/einmal-operators/einmal/credential"

// Verifier is verifier.
func Verifier(password credential.Password, salt []byte) (string, error) {
	return verifier(password, salt)
}
