package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// safePath is the search_path of every connection. A tenant owns its database: functions that it makes there must not be called with the
// rights of the admin (CVE-2018-1058), or of a login whose password is proven. As a startup parameter it takes precedence over what ALTER
// DATABASE and ALTER ROLE set. pg_temp is named, as it would be searched first for tables otherwise.
const safePath = "pg_catalog, pg_temp"

// errElsewhere tells that the DSN does not lead to the server of the pool any more.
var errElsewhere = errors.New("the address is not that of the primary that the pool is connected to")

// adminError is an error of the admin's own connection. Its code is hidden: it must not be mistaken for an answer about another user.
type adminError struct{ error }

func (a adminError) Is(target error) bool { return errors.Is(a.error, target) }

// within calls a function with a connection to another database of the server.
func (s *Server) within(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	settings := s.pool.Config().ConnConfig
	settings.Database = database
	return s.beside(ctx, "", settings, func(connection *pgx.Conn, err error) error {
		if err != nil {
			return fmt.Errorf("connect to the database %s: %w", database, explain(err))
		}
		return do(connection)
	})
}

// login tries whether a user can log in to a database with a password. It executes no statement: the session has the rights of the user, and
// the database belongs to a tenant.
func (s *Server) login(ctx context.Context, username, database string, password credential.Password) error {
	return s.loginAt(ctx, "", database, credential.Record{Username: username, Password: password})
}

// loginAt is login with the address of the server, "" for one that is not known yet.
func (s *Server) loginAt(ctx context.Context, address, database string, as credential.Record) error {
	settings := s.pool.Config().ConnConfig
	settings.User, settings.Password, settings.Database = as.Username, as.Password.Reveal(), database
	settings.RequireAuth = scramOnly
	if s.verified {
		settings.RequireAuth = provingMethods
	}
	settings.ValidateConnect = newEnough(nil)
	settings.RuntimeParams = map[string]string{ // The user's own settings are tried as well.
		"application_name": settings.RuntimeParams["application_name"], "search_path": safePath,
	}
	return s.beside(ctx, address, settings, func(_ *pgx.Conn, err error) error {
		if _, kind := kindOf(codeOf(err)); errors.Is(kind, ErrRights) {
			return err // It is not the admin who lacks a right.
		}
		return explain(err)
	})
}

// beside makes a connection beside those of the pool, to the server that these are connected to, at an address, or where that is if it is "". It waits for room if need be, and ends the
// connection when a function has been called with it, or with the error.
func (s *Server) beside(ctx context.Context, address string, settings *pgx.ConnConfig, do func(*pgx.Conn, error) error) error {
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	case <-ctx.Done():
		return do(nil, context.Cause(ctx))
	}
	if address == "" {
		var err error
		if address, err = s.address(ctx); err != nil {
			return do(nil, adminError{err})
		}
	}
	// A standby of a DSN of several hosts may not have the database yet, and pgx asks no other host after that answer.
	there, elsewhere, dial := false, false, settings.DialFunc
	settings.DialFunc = func(ctx context.Context, network, to string) (net.Conn, error) {
		if to != address {
			elsewhere = true
			return nil, errElsewhere
		}
		there = true
		return dial(ctx, network, to)
	}
	connection, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		if elsewhere && !there {
			s.pool.Reset() // The pool connects to where the DSN leads now.
		}
		return do(nil, err)
	}
	err = do(connection, nil)
	hangUp(ctx, connection)
	return err
}

// address is where the server is that the pool is connected to, in the form that is dialed.
func (s *Server) address(ctx context.Context) (string, error) {
	var address string
	err := s.look(ctx, func(_ context.Context, on *pgxpool.Conn) error {
		address = addressOf(on)
		return nil
	})
	return address, err
}

// addressOf is where a connection leads to.
func addressOf(on *pgxpool.Conn) string { return on.Conn().PgConn().Conn().RemoteAddr().String() }

// hangUp ends a session, also when ctx is over, and waits until the server has ended it: until then it counts as one of the user's, whose
// sessions can be limited. What was done is done, so that it does not fail.
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

// hosts are the addresses that a DSN leads to, without sockets of this machine, and whether TLS verifies the server and its name at each.
func hosts(settings *pgconn.Config) map[string]bool {
	found := map[string]bool{}
	for _, one := range append([]*pgconn.FallbackConfig{{Host: settings.Host, Port: settings.Port, TLSConfig: settings.TLSConfig}}, settings.Fallbacks...) {
		network, address := pgconn.NetworkAddress(one.Host, one.Port)
		if network == "unix" {
			continue
		}
		verified := one.TLSConfig != nil && !one.TLSConfig.InsecureSkipVerify
		before, seen := found[address]
		found[address] = verified && (before || !seen) // sslmode=prefer has one with TLS, and one without.
	}
	return found
}
