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

// transactionTimeoutVersion is the first version that has the setting transaction_timeout.
const transactionTimeoutVersion = 17

// oldServerError is the ErrVersion of a server. Its text is complete: errors that a client wraps around it are left out.
type oldServerError struct{ address, version string }

func (o oldServerError) Error() string {
	return fmt.Sprintf("PostgreSQL server %s has version %s, the oldest supported version is %d; upgrade it, or use another server in the DSN",
		o.address, o.version, oldestVersion)
}

func (oldServerError) Unwrap() error { return ErrVersion }

// newEnough validates the version of a server after connecting, before any other validation, and stores its major version. A server reports it to
// every client, for example "15.18 (Debian 15.18-0+deb12u1)" or "19devel" (server_version in the PostgreSQL documentation).
func newEnough(known *atomic.Int64, then pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, connection *pgconn.PgConn) error {
		version, _, _ := strings.Cut(connection.ParameterStatus("server_version"), " ")
		digits := strings.IndexFunc(version+".", func(r rune) bool { return r < '0' || r > '9' })
		major, err := strconv.Atoi(version[:digits])
		if err != nil || major < oldestVersion {
			return oldServerError{connection.Conn().RemoteAddr().String(), version}
		}
		known.Store(int64(major))
		if then == nil {
			return nil
		}
		return then(ctx, connection)
	}
}
