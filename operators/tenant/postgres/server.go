package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/breaker"
)

// The defaults of a Config, and what no Config changes.
const (
	defaultPoolSize    = 4
	defaultApplication = "einmal-tenant"
	connectTimeout     = 5 * time.Second
	defaultTimeout     = 15 * time.Second
)

// Ways of logging in (require_auth of libpq).
const (
	// provingMethods prove a password. A server that trusts everyone would make each password right.
	provingMethods = "scram-sha-256,md5,password"
	// scramOnly is what is allowed where TLS does not verify the server: the others show the password to an impostor.
	scramOnly = "scram-sha-256"
)

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
	// unverified are the addresses at which TLS does not verify the server; verified tells that there are none.
	unverified []string
	verified   bool
	// breaker opens when the admin's own sessions get no answer, which no tenant can bring about for the others.
	breaker breaker.Breaker
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
	unverified, err := protect(&settings.ConnConfig.Config)
	if err != nil {
		return nil, err
	}
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
	settings.ConnConfig.RuntimeParams["search_path"] = safePath
	pool, err := pgxpool.NewWithConfig(context.Background(), settings)
	if err != nil {
		return nil, fmt.Errorf("prepare connections to PostgreSQL: %w", err)
	}
	return &Server{
		pool: pool, room: make(chan struct{}, settings.MaxConns), timeout: timeout, unverified: unverified, verified: len(unverified) == 0,
	}, nil
}

// protect keeps passwords from being sent in clear, or as MD5, where TLS does not verify the server, and returns the addresses where that is so.
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
		return nil, fmt.Errorf("require_auth=%s in the DSN of the PostgreSQL server lets the password be sent to an impostor: "+
			"leave out password and md5, or set sslmode=verify-full", settings.RequireAuth)
	}
	return unverified, nil
}

// sendsPassword reports whether a list of methods, as in require_auth, allows one that shows the password.
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

// Unverified returns the addresses of the DSN, each host:port, at which TLS does not verify the server and its name. Only sslmode=verify-full
// does. There, passwords are proven by SCRAM-SHA-256 alone, and all else can be read and changed on the way.
func (s *Server) Unverified() []string { return slices.Clone(s.unverified) }

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
	return explain(s.breaker.Do(ctx, unanswered, func() error { return s.lookNow(ctx, do) }))
}

// unanswered reports whether an error means that the server gave no answer.
func unanswered(err error) bool { return codeOf(err) == "" && errors.Is(explain(err), ErrDown) }

func (s *Server) lookNow(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	connection, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	if s.breaker.Open() { // It opened while others had the connections.
		connection.Release()
		return breaker.ErrOpen
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err = do(ctx, connection)
	if err != nil && ctx.Err() != nil {
		_ = connection.Hijack().PgConn().Conn().Close() // Else its place is taken until it answers a farewell, or for long.
	} else {
		connection.Release()
	}
	return err
}

// transaction executes statements all or nothing, in one message to the server: it makes a transaction of what one message holds.
func transaction(ctx context.Context, on executor, statements []string) error {
	_, err := on.Exec(ctx, strings.Join(statements, ";\n"))
	return explain(err)
}
