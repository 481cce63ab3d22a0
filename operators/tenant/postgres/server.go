package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// The defaults of a Config, and what no Config changes.
const (
	defaultPoolSize    = 4
	defaultApplication = "einmal-tenant"
	connectTimeout     = 5 * time.Second
	defaultTimeout     = 15 * time.Second
)

// provingMethods are the ways of logging in that prove a password (require_auth of libpq). A server that trusts whoever comes would make
// each password right.
const provingMethods = "scram-sha-256,md5,password"

// Config tells how to reach a server.
type Config struct {
	// DSN is that of the admin, with its password: postgres://admin:password@host:5432/postgres?sslmode=verify-full, or in the form of
	// key=value. Its database is the one that connections are made to, but for what is done inside of a tenant's. TLS is what
	// sslmode, sslrootcert and so on say. It must reach the server itself, and not a pooler such as pgbouncer.
	DSN credential.Password
	// PoolSize is how many connections it has at most, and as many again for moments, to look into the databases of tenants and to try
	// passwords; 0 is 4.
	PoolSize int32
	// Application is the application_name of its sessions; "" is "einmal-tenant".
	Application string
	// Timeout is how long the server has for the answer to each look; 0 is 15 seconds. What changes something may take as long as its
	// statement_timeout says.
	Timeout time.Duration
}

// Server is a PostgreSQL server, reached as an admin. Its methods may be called at the same time.
type Server struct {
	pool *pgxpool.Pool
	// room is taken by connections beside those of the pool: to databases of tenants, and to try passwords.
	room chan struct{}
	// timeout is how long it has for an answer.
	timeout time.Duration
}

// Open prepares connections to a server, and makes none yet: a server that is down, or too old (ErrVersion), is met by the calls that need
// it. Statements end after a minute and wait ten seconds for a lock, unless the DSN says otherwise.
func Open(config Config) (*Server, error) {
	settings, err := pgxpool.ParseConfig(config.DSN.Reveal())
	if err != nil {
		// The cause could quote the password.
		return nil, errors.New("the DSN of the PostgreSQL server is not understood: " +
			"give it as postgres://user:password@host:5432/postgres?sslmode=verify-full, with %xx for what is special in the password")
	}
	settings.MaxConns, settings.MinConns = defaultPoolSize, 0
	if config.PoolSize > 0 {
		settings.MaxConns = config.PoolSize
	}
	settings.MaxConnIdleTime = 5 * time.Minute
	timeout := cmp.Or(max(config.Timeout, 0), defaultTimeout)
	settings.PingTimeout = timeout // It pings what was idle.
	if settings.ConnConfig.ValidateConnect == nil {
		// A standby lags behind: what it has not is not absent.
		settings.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	settings.ConnConfig.ValidateConnect = newEnough(settings.ConnConfig.ValidateConnect)
	if settings.ConnConfig.ConnectTimeout == 0 {
		settings.ConnConfig.ConnectTimeout = connectTimeout
	}
	application := config.Application
	if application == "" {
		application = defaultApplication
	}
	for name, value := range map[string]string{
		"application_name": application, "statement_timeout": "60s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "60s",
	} {
		if _, given := settings.ConnConfig.RuntimeParams[name]; !given {
			settings.ConnConfig.RuntimeParams[name] = value
		}
	}
	// Literals are quoted for this.
	settings.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on"
	// A tenant owns its database: functions that it makes there must not be called with the admin's rights (CVE-2018-1058).
	settings.ConnConfig.RuntimeParams["search_path"] = "pg_catalog, pg_temp"
	pool, err := pgxpool.NewWithConfig(context.Background(), settings)
	if err != nil {
		return nil, fmt.Errorf("prepare connections to PostgreSQL: %w", err)
	}
	return &Server{pool: pool, room: make(chan struct{}, settings.MaxConns), timeout: timeout}, nil
}

// Close ends the connections.
func (s *Server) Close() { s.pool.Close() }

// Check tells whether the server can be used: that it is reached, is a primary of version 15 or later, and that the admin may make roles
// and databases. It writes nothing.
func (s *Server) Check(ctx context.Context) error {
	var admin string
	var able, inherits bool
	err := s.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		return on.QueryRow(ctx, `SELECT rolname, rolsuper OR rolcreaterole AND rolcreatedb, rolsuper OR rolinherit
			FROM pg_roles WHERE rolname = current_user`).Scan(&admin, &able, &inherits)
	})
	role := identifier(admin)
	switch {
	case err != nil:
		return fmt.Errorf("check the PostgreSQL server: %w", err)
	case !able:
		return fmt.Errorf("the PostgreSQL role %s: %w: as a superuser run ALTER ROLE %s CREATEROLE CREATEDB", admin, ErrRights, role)
	case !inherits:
		return fmt.Errorf("the PostgreSQL role %s: %w: as a superuser run ALTER ROLE %s INHERIT", admin, ErrRights, role)
	}
	return nil
}

// look calls a function with a connection of the pool and a context that leaves the server a moment for the answer: one that has fallen
// silent does not hang up either.
func (s *Server) look(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	connection, err := s.pool.Acquire(ctx)
	if err != nil {
		return explain(err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err = do(ctx, connection)
	if err != nil && ctx.Err() != nil {
		_ = connection.Hijack().PgConn().Conn().Close() // Else its place is taken until it answers a farewell, or for long.
	} else {
		connection.Release()
	}
	return explain(err)
}

// transaction executes statements all or nothing, in one message to the server: it makes a transaction of what one message holds.
func transaction(ctx context.Context, on executor, statements []string) error {
	_, err := on.Exec(ctx, strings.Join(statements, ";\n"))
	return explain(err)
}

// within calls a function with a connection to another database of the server.
func (s *Server) within(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	settings := s.pool.Config().ConnConfig
	settings.Database = database
	return s.beside(ctx, settings, func(connection *pgx.Conn, err error) error {
		if err != nil {
			return fmt.Errorf("connect to the database %s: %w", database, explain(err))
		}
		return do(connection)
	})
}

// login tries whether a user can log in to a database with a password.
func (s *Server) login(ctx context.Context, username, database string, password credential.Password) error {
	settings := s.pool.Config().ConnConfig
	settings.User, settings.Password, settings.Database = username, password.Reveal(), database
	settings.RequireAuth = provingMethods
	for name := range settings.RuntimeParams {
		if name != "application_name" {
			delete(settings.RuntimeParams, name) // The user's own are tried as well.
		}
	}
	return s.beside(ctx, settings, func(_ *pgx.Conn, err error) error {
		if _, kind := kindOf(codeOf(err)); errors.Is(kind, ErrRights) {
			return err // It is not the admin who lacks a right.
		}
		return explain(err)
	})
}

// beside makes a connection beside those of the pool, waits for room for it if need be, and ends it when a function has been called with it,
// or with the error.
func (s *Server) beside(ctx context.Context, settings *pgx.ConnConfig, do func(*pgx.Conn, error) error) error {
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
	case <-ctx.Done():
		return do(nil, context.Cause(ctx))
	}
	connection, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		return do(nil, err)
	}
	err = do(connection, nil)
	hangUp(ctx, connection)
	return err
}

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
