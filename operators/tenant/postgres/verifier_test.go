package postgres_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// The verifier is computed in the client. This is the example of RFC 7677, section 3: what the server
// proves itself with comes from the verifier's ServerKey.
func TestTheVerifierIsThatOfTheRFC(t *testing.T) {
	t.Parallel()
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := postgres.Verifier(credential.NewPassword("pencil"), salt)
	if err != nil {
		t.Fatal(err)
	}
	const nonce = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	rest, serverKey, _ := strings.Cut(verifier, ":")
	_, serverKey, _ = strings.Cut(serverKey, ":")
	if !strings.HasPrefix(rest, "SCRAM-SHA-256$4096") {
		t.Errorf("the verifier begins with %s", rest)
	}
	key, err := base64.StdEncoding.DecodeString(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte("n=user,r=rOprNGfwEbeRWgbNEkqO," + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws," + nonce))
	if got, want := base64.StdEncoding.EncodeToString(sum.Sum(nil)), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="; got != want {
		t.Errorf("the server would prove itself with %s, want %s", got, want)
	}
}

// A password that clients could understand differently is the store's mistake, and is not set.
func TestAPasswordThatIsNotPlainIsInvalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "pässword", "a\x00b", "line\n"} {
		_, err := postgres.Verifier(credential.NewPassword(text), []byte("0123456789abcdef"))
		if !errors.Is(err, credential.ErrInvalid) || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
