package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// oldestVersion is the first version in which PUBLIC cannot create objects in the schema public and the owner of a database owns that
// schema (release notes of PostgreSQL 15).
const oldestVersion = 15

// oldestMinors returns the first usable minor version of each major version that has unusable ones. Before CVE-2024-10978 was corrected (15.9,
// 16.5, 17.1), DISCARD ALL, which connection pools send, resets the role of a session to the login: what the session then creates belongs to the
// login, and the next login of the app cannot use it. The correction itself ignores ALTER ROLE … SET role, until 15.10, 16.6 and 17.2 (release
// notes).
func oldestMinors() map[int]int { return map[int]int{15: 10, 16: 6, 17: 2} }

// transactionTimeoutVersion is the first version that has the setting transaction_timeout.
const transactionTimeoutVersion = 17

// oldServerError is the ErrVersion of a server. Its text is complete: errors that a client wraps around it are left out.
type oldServerError struct{ address, version string }

func (o oldServerError) Error() string {
	return fmt.Sprintf("PostgreSQL server %s has version %s; supported are 15.10, 16.6 and 17.2 with their later minor versions, and 18 and later; "+
		"upgrade it, or use another server in the DSN", o.address, o.version)
}

func (oldServerError) Unwrap() error { return ErrVersion }

// newEnough validates the version of a server after connecting, before any other validation, and stores its major version. A server reports it to
// every client, for example "15.18 (Debian 15.18-0+deb12u1)" or "19devel" (server_version in the PostgreSQL documentation).
func newEnough(known *atomic.Int64, then pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, connection *pgconn.PgConn) error {
		version, _, _ := strings.Cut(connection.ParameterStatus("server_version"), " ")
		first, rest, _ := strings.Cut(version, ".")
		major, minor := leading(first), leading(rest)
		if major < oldestVersion || minor < oldestMinors()[major] {
			return oldServerError{connection.Conn().RemoteAddr().String(), version}
		}
		known.Store(int64(major))
		if then == nil {
			return nil
		}
		return then(ctx, connection)
	}
}

// leading returns the number that a text begins with, or 0.
func leading(text string) int {
	digits := strings.IndexFunc(text+".", func(r rune) bool { return r < '0' || r > '9' })
	number, err := strconv.Atoi(text[:digits])
	if err != nil {
		return 0
	}
	return number
}
