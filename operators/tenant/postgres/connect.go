package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// safePath is the search_path of every connection. A tenant owns its database, so functions that it creates there must not run with the
// rights of the administrator (CVE-2018-1058), or of a login whose password is verified. As a startup parameter it overrides ALTER DATABASE
// and ALTER ROLE settings. pg_temp is listed because it would otherwise be searched first for tables.
const safePath = "pg_catalog, pg_temp"

// errElsewhere means that the DSN resolves to another server than that of the pool.
var errElsewhere = errors.New("the address is not that of the primary that the pool is connected to")

// adminError is an error of the administrator's own connection. It hides the error code, which must not be mistaken for an answer about
// another user.
type adminError struct{ error }

func (a adminError) Is(target error) bool { return errors.Is(a.error, target) }

// within calls a function with a connection to another database of the server.
func (s *Server) within(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	leave, err := s.places.enter(ctx, database)
	if err != nil {
		return fmt.Errorf("connect to database %s: %w", database, err)
	}
	defer leave()
	return s.inside(ctx, database, do)
}

// inside is within for a caller that has a place.
func (s *Server) inside(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	settings := s.pool.Config().ConnConfig
	settings.Database, settings.ValidateConnect = database, s.validate
	maps.Copy(settings.RuntimeParams, s.ownSettings())
	return s.beside(ctx, "", settings, func(connection *pgx.Conn, err error) error {
		if err != nil {
			return fmt.Errorf("connect to database %s: %w", database, explain(err))
		}
		return do(connection)
	})
}

// login tests whether a user can log in to a database with a password: see proves. It executes no statement, because the session has the rights of
// the user and the database belongs to a tenant. The session has the settings that sessions of the user have, so what fails for them fails here.
func (s *Server) login(ctx context.Context, username, database string, password credential.Password) error {
	return s.loginAt(ctx, "", database, credential.Record{Username: username, Password: password})
}

// loginAt is login at a known address of the server, or "".
func (s *Server) loginAt(ctx context.Context, address, database string, as credential.Record) error {
	settings := s.pool.Config().ConnConfig
	settings.User, settings.Password, settings.Database = as.Username, as.Password.Reveal(), database
	settings.RequireAuth = scramOnly
	if s.verified {
		settings.RequireAuth = provingMethods
	}
	settings.ValidateConnect = newEnough(s.major, nil)
	settings.RuntimeParams = map[string]string{"application_name": settings.RuntimeParams["application_name"], "search_path": safePath}
	maps.Copy(settings.RuntimeParams, quietSettings())
	leave, err := s.places.enter(ctx, database)
	if err != nil {
		return err
	}
	defer leave()
	accepted := follow(settings)
	return s.beside(ctx, address, settings, func(_ *pgx.Conn, err error) error {
		if _, kind := kindOf(codeOf(err)); !errors.Is(kind, ErrRights) { // The administrator does not lack a right here.
			err = explain(err)
		}
		err = shorten(err)
		if err != nil && accepted() && !errors.Is(err, ErrVersion) {
			return afterPasswordError{err}
		}
		return err
	})
}

// quietSettings are startup parameters that keep text of a tenant from the operator, such as the warning about a value that is not valid.
func quietSettings() map[string]string {
	return map[string]string{"client_min_messages": "error", "client_encoding": "UTF8"}
}

// ownSettings are startup parameters of the administrator's connections to databases of tenants. They stand over what a tenant sets for its database
// (ALTER DATABASE): settings that could end or change the session, or send text of the tenant. Limits of time for statements and locks are those of the
// DSN.
func (s *Server) ownSettings() map[string]string {
	own := quietSettings()
	maps.Copy(own, map[string]string{
		"search_path": safePath, "local_preload_libraries": "", "tcp_user_timeout": "0", "idle_session_timeout": "0",
		"default_transaction_read_only": "off", "default_transaction_deferrable": "off", "default_transaction_isolation": "read committed",
	})
	own["role"] = cmp.Or(s.pool.Config().ConnConfig.RuntimeParams["role"], "none")
	if s.major.Load() >= transactionTimeoutVersion {
		own["transaction_timeout"] = "0"
	}
	return own
}

// beside opens a connection outside of the pool, to the server that the pool is connected to, and calls a function with it or with the
// error. "" as the address means that of the pool. The caller has a place. It closes the connection afterwards.
func (s *Server) beside(ctx context.Context, address string, settings *pgx.ConnConfig, do func(*pgx.Conn, error) error) error {
	if address == "" {
		var err error
		if address, err = s.address(ctx); err != nil {
			return do(nil, adminError{err})
		}
	}
	// With several hosts in the DSN, a standby may not have the database yet, and pgx then tries no other host.
	there, elsewhere, dial := false, false, settings.DialFunc
	settings.DialFunc = func(ctx context.Context, network, to string) (net.Conn, error) {
		if to != address {
			elsewhere = true
			return nil, errElsewhere
		}
		there = true
		return dial(ctx, network, to)
	}
	begun := time.Now()
	connection, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		if elsewhere && !there {
			s.pool.Reset() // The pool connects to the current server of the DSN.
		}
		if there {
			err = s.places.note(settings.Database, time.Since(begun), err)
		}
		return do(nil, err)
	}
	err = do(connection, nil)
	hangUp(ctx, connection)
	return s.places.note(settings.Database, time.Since(begun), err)
}

// address returns the address of the server that the pool is connected to, in the form that is dialed.
func (s *Server) address(ctx context.Context) (string, error) {
	var address string
	err := s.look(ctx, func(_ context.Context, on *pgxpool.Conn) error {
		address = addressOf(on)
		return nil
	})
	return address, err
}

// addressOf returns the remote address of a connection.
func addressOf(on *pgxpool.Conn) string { return on.Conn().PgConn().Conn().RemoteAddr().String() }

// hangUp ends a session, even if ctx is done, and waits until the server has ended it: until then it counts against the connection limit of
// the user. It cannot fail, because the work of the session is complete.
func hangUp(ctx context.Context, connection *pgx.Conn) {
	wire, err := connection.PgConn().Hijack()
	if err != nil { // It is broken.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = connection.Close(ctx)
		return
	}
	_ = wire.Conn.SetDeadline(time.Now().Add(connectTimeout))
	wire.Frontend.Send(&pgproto3.Terminate{})
	_ = wire.Frontend.Flush()
	_, _ = io.Copy(io.Discard, wire.Conn)
	_ = wire.Conn.Close()
}

// hosts returns the TCP addresses of a DSN, and for each whether TLS verifies the server and its name.
func hosts(settings *pgconn.Config) map[string]bool {
	found := map[string]bool{}
	for _, one := range append([]*pgconn.FallbackConfig{{Host: settings.Host, Port: settings.Port, TLSConfig: settings.TLSConfig}}, settings.Fallbacks...) {
		network, address := pgconn.NetworkAddress(one.Host, one.Port)
		if network == "unix" {
			continue
		}
		verified := one.TLSConfig != nil && !one.TLSConfig.InsecureSkipVerify
		before, seen := found[address]
		found[address] = verified && (before || !seen) // sslmode=prefer lists each address with TLS and without.
	}
	return found
}
