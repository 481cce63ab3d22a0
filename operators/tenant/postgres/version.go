package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// oldestVersion is the first in which PUBLIC makes nothing in the schema public, and the owner of a database owns it (release notes of
// PostgreSQL 15).
const oldestVersion = 15

// oldServerError is ErrVersion of a server, which says all that there is to say: what a client puts around it is left out.
type oldServerError struct{ address, version string }

func (o oldServerError) Error() string {
	return fmt.Sprintf("the PostgreSQL server %s is of version %s, and the oldest that is supported is %d: upgrade it, or let the DSN lead to another",
		o.address, o.version, oldestVersion)
}

func (oldServerError) Unwrap() error { return ErrVersion }

// newEnough looks at the version of a server that was connected to, before anything else that is to be looked at, if there is anything. A server tells it to
// whoever connects, such as "15.18 (Debian 15.18-0+deb12u1)" or "19devel" (server_version, documentation of PostgreSQL).
func newEnough(then pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, connection *pgconn.PgConn) error {
		told, _, _ := strings.Cut(connection.ParameterStatus("server_version"), " ")
		digits := strings.IndexFunc(told+".", func(r rune) bool { return r < '0' || r > '9' })
		if major, err := strconv.Atoi(told[:digits]); err != nil || major < oldestVersion {
			return oldServerError{connection.Conn().RemoteAddr().String(), told}
		}
		if then == nil {
			return nil
		}
		return then(ctx, connection)
	}
}
