package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sony/gobreaker/v2"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/breaker"
)

// The defaults of a Config, and the fixed connect timeout.
const (
	defaultPoolSize = 4
	leastPoolSize   = 2 // One connection waits for a lock, and one ends the session that holds it: see insist.
	connectTimeout  = 5 * time.Second
	defaultTimeout  = 15 * time.Second
	// longestMessage is the length in bytes of the longest message that is read from a server. Tenants can put up to 1 GB into some.
	longestMessage = 4 << 20
)

// Authentication methods (require_auth of libpq).
const (
	// provingMethods prove a password. Without a list, a server with the method trust would accept every password.
	provingMethods = "scram-sha-256,md5,password"
	// scramOnly is used if TLS does not verify the server: the other methods reveal the password to an impostor.
	scramOnly = "scram-sha-256"
)

// Config describes how to connect to a server.
type Config struct {
	// DSN is the connection string of the administrator, with its password:
	// postgres://admin:password@host:5432/postgres?sslmode=verify-full, or in the key=value format. It must point to the server itself, not
	// to a pooler such as PgBouncer. Connections use its database, except for work inside a tenant's database. If the administrator works with
	// the rights of another role, name that role here, with role=NAME: in a tenant's database, settings of ALTER ROLE … SET role do not apply.
	DSN credential.Password
	// PoolSize is the maximum number of pooled connections. As many again can be open for a short time, to work inside tenant databases and
	// to verify passwords. The default is 4. 1 means 2.
	PoolSize int32
	// Timeout limits each read. The default is 15 seconds. Writes are limited by statement_timeout.
	Timeout time.Duration
}

// Server is a PostgreSQL server with an administrator's connections. It is safe for concurrent use.
type Server struct {
	pool *pgxpool.Pool
	// places limits connections outside of the pool: to databases of tenants, and to verify passwords.
	places *places
	// blocked limits connections that wait for locks of others: see insist.
	blocked chan struct{}
	// timeout limits each read.
	timeout time.Duration
	// unverified are the addresses at which TLS does not verify the server; verified is true if there are none.
	unverified []string
	verified   bool
	// breaker opens when the administrator's own sessions get no answer. A tenant cannot cause that for others.
	breaker *breaker.Breaker
	// major is the major version of the server; 0 before the first connection.
	major *atomic.Int64
	// validate checks a connection to a database of a tenant.
	validate pgconn.ValidateConnectFunc
}

// Open prepares a server and opens no connection. If the server is down or too old (ErrVersion), later calls return the error. The defaults
// of application_name, statement_timeout and lock_timeout are "einmal-tenant", a minute and ten seconds; the DSN can set others. Open refuses
// a DSN that can be read in two ways. No error of Open contains a part of the DSN. Later errors name hosts and ports of the DSN.
func Open(config Config) (*Server, error) {
	settings, err := parseDSN(config.DSN)
	if err != nil {
		return nil, err
	}
	return open(config, settings)
}

// open is Open with the parsed DSN.
func open(config Config, settings *pgxpool.Config) (*Server, error) {
	settings.MaxConns, settings.MinConns = defaultPoolSize, 0
	if config.PoolSize > 0 {
		settings.MaxConns = max(config.PoolSize, leastPoolSize)
	}
	settings.MaxConnIdleTime = 5 * time.Minute
	timeout := cmp.Or(max(config.Timeout, 0), defaultTimeout)
	settings.PingTimeout = timeout // The pool pings idle connections.
	if settings.ConnConfig.ValidateConnect == nil {
		// A standby lags behind, so a missing object there may exist on the primary.
		settings.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	major := &atomic.Int64{}
	validate := newEnough(major, settings.ConnConfig.ValidateConnect)
	settings.ConnConfig.ValidateConnect = newEnough(major, direct(settings.ConnConfig.ValidateConnect))
	settings.ConnConfig.MaxProtocolMessageBodyLen = longestMessage
	unverified, err := protect(&settings.ConnConfig.Config)
	if err != nil {
		return nil, err
	}
	if settings.ConnConfig.ConnectTimeout == 0 {
		settings.ConnConfig.ConnectTimeout = connectTimeout
	}
	for name, value := range map[string]string{
		"application_name": "einmal-tenant", "statement_timeout": "60s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "60s",
	} {
		if _, given := settings.ConnConfig.RuntimeParams[name]; !given {
			settings.ConnConfig.RuntimeParams[name] = value
		}
	}
	// Required by literal.
	settings.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on"
	settings.ConnConfig.RuntimeParams["search_path"] = safePath
	settings.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	pool, err := pgxpool.NewWithConfig(context.Background(), settings)
	if err != nil {
		return nil, fmt.Errorf("create the PostgreSQL connection pool: %w", err)
	}
	return &Server{
		pool: pool, places: newPlaces(settings.MaxConns), blocked: make(chan struct{}, 1), timeout: timeout, unverified: unverified, verified: len(unverified) == 0,
		breaker: breaker.New(), major: major, validate: validate,
	}, nil
}

// protect prevents that passwords are sent in clear text or as MD5 without verified TLS. It returns the addresses without verified TLS.
func protect(settings *pgconn.Config) ([]string, error) {
	var unverified []string
	for address, verified := range hosts(settings) {
		if !verified {
			unverified = append(unverified, address)
		}
	}
	slices.Sort(unverified)
	switch {
	case len(unverified) == 0:
	case settings.RequireAuth == "":
		settings.RequireAuth = scramOnly
	case sendsPassword(settings.RequireAuth):
		return nil, errors.New("require_auth in the PostgreSQL DSN allows sending the password to an impostor; " +
			"remove password and md5, or set sslmode=verify-full")
	}
	return unverified, nil
}

// sendsPassword reports whether a require_auth list allows a method that reveals the password.
func sendsPassword(methods string) bool {
	var list []string
	for method := range strings.SplitSeq(methods, ",") {
		list = append(list, strings.TrimSpace(method))
	}
	if strings.HasPrefix(list[0], "!") {
		return !slices.Contains(list, "!password") || !slices.Contains(list, "!md5")
	}
	return slices.Contains(list, "password") || slices.Contains(list, "md5")
}

// Unverified returns the addresses of the DSN, as host:port, at which TLS does not verify the server and its name. Only sslmode=verify-full
// does. At these addresses only SCRAM-SHA-256 is used, and all other traffic can be read and changed on the way.
func (s *Server) Unverified() []string { return slices.Clone(s.unverified) }

// Close ends the connections.
func (s *Server) Close() { s.pool.Close() }

// Check returns an error unless the server is reachable, is a primary of a supported version (ErrVersion), and allows the administrator to create roles
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
		return fmt.Errorf("check PostgreSQL server: %w", err)
	case !able:
		return fmt.Errorf("PostgreSQL role %s: %w; run as a superuser: ALTER ROLE %s CREATEROLE CREATEDB", admin, ErrRights, role)
	case !inherits:
		return fmt.Errorf("PostgreSQL role %s: %w; run as a superuser: ALTER ROLE %s INHERIT", admin, ErrRights, role)
	}
	return nil
}

// look calls a function with a pooled connection and a context with the timeout of a read, because a server that hangs does not close its
// connections.
func (s *Server) look(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	return explain(breaker.Do(ctx, s.breaker, unanswered, func() error { return s.lookNow(ctx, do) }))
}

// unanswered reports whether an error means that the server gave no answer.
func unanswered(err error) bool { return codeOf(err) == "" && errors.Is(explain(err), ErrDown) }

func (s *Server) lookNow(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	connection, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	if s.breaker.State() == gobreaker.StateOpen { // It opened while others had the connections.
		connection.Release()
		return breaker.ErrOpen
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err = do(ctx, connection)
	if err != nil && ctx.Err() != nil {
		_ = connection.Hijack().PgConn().Conn().Close() // A graceful close would keep the place in the pool until the server answers.
	} else {
		connection.Release()
	}
	return err
}

// transaction executes statements atomically, in one message to the server, which makes one transaction of it.
func transaction(ctx context.Context, on executor, statements []string) error {
	_, err := on.Exec(ctx, strings.Join(statements, ";\n"))
	return explain(err)
}
