package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// poolerError is the ErrPooler of an address. Its text is complete: errors that a client wraps around it are left out.
type poolerError struct{ address string }

func (p poolerError) Error() string {
	return fmt.Sprintf("%s is a connection pooler, such as PgBouncer. Its sessions can have settings of tenants, with which functions of tenants would run "+
		"with the rights of the administrator; name the address of the PostgreSQL server itself in the DSN", p.address)
}

func (poolerError) Unwrap() error { return ErrPooler }

// direct checks that the administrator's session is on the server, before any other validation. A pooler can drop startup parameters, so that a
// search_path of a tenant applies, and gives other process IDs than the server (BackendKeyData in the documentation of PostgreSQL's protocol). The
// query calls no function that a tenant could replace.
func direct(then pgconn.ValidateConnectFunc) pgconn.ValidateConnectFunc {
	return func(ctx context.Context, connection *pgconn.PgConn) error {
		results, err := connection.Exec(ctx, "SELECT pg_catalog.pg_backend_pid()").ReadAll()
		if err != nil {
			return err
		}
		if pid := strconv.FormatUint(uint64(connection.PID()), 10); len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != pid {
			return poolerError{connection.Conn().RemoteAddr().String()}
		}
		return then(ctx, connection)
	}
}
