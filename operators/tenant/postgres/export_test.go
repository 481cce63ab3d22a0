package postgres

import (
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/einmal-operators/einmal/credential"
)

// Verifier is verifier.
func Verifier(password credential.Password, salt []byte) (string, error) {
	return verifier(password, salt)
}

// OpenWith is Open, with functions that look up names and dial.
func OpenWith(config Config, lookup pgconn.LookupFunc, dial pgconn.DialFunc) (*Server, error) {
	settings, err := parseDSN(config.DSN)
	if err != nil {
		return nil, err
	}
	settings.ConnConfig.LookupFunc, settings.ConnConfig.DialFunc = lookup, dial
	return open(config, settings)
}

// Explain is explain.
func Explain(err error) error { return explain(err) }
