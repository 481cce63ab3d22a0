package witness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/einmal-operators/einmal/credential"
)

// Postgres is a login to a database of PostgreSQL, without TLS.
type Postgres struct {
	// Address is its host and port.
	Address, Database string
	Username          string
	Password          credential.Password
}

// Redis is a login to a node of a Redis, without TLS.
type Redis struct {
	// Address is its host and port.
	Address  string
	Username string
	Password credential.Password
	// Key is what is set after each login, for a minute: one that begins with the user's prefix.
	Key string
}

var _, _ Target = Postgres{}, Redis{}

// String names the login.
func (p Postgres) String() string {
	return fmt.Sprintf("PostgreSQL %s/%s as %s", p.Address, p.Database, p.Username)
}

func (p Postgres) attempt(ctx context.Context) error {
	dsn := url.URL{
		Scheme: "postgres", User: url.UserPassword(p.Username, p.Password.Reveal()), Host: p.Address, Path: p.Database, RawQuery: "sslmode=disable",
	}
	connection, err := pgx.Connect(ctx, dsn.String())
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(ctx) }()
	_, err = connection.Exec(ctx, "SELECT 1")
	return err
}

func (Postgres) reason(err error) Reason {
	var told *pgconn.PgError
	if !errors.As(err, &told) {
		return Unreachable
	}
	switch told.Code {
	case "28P01":
		return WrongPassword
	case "28000", "42501", "3D000":
		return Denied
	}
	// Insufficient resources, and intervention of an operator: PostgreSQL, Appendix A.
	if strings.HasPrefix(told.Code, "53") || strings.HasPrefix(told.Code, "57P") {
		return Unavailable
	}
	return Other
}

// String names the login.
func (r Redis) String() string { return fmt.Sprintf("Redis %s as %s", r.Address, r.Username) }

func (r Redis) attempt(ctx context.Context) error {
	client := goredis.NewClient(&goredis.Options{
		Addr: r.Address, Username: r.Username, Password: r.Password.Reveal(), Protocol: 2, PoolSize: 1, MaxRetries: -1, DialerRetries: 1,
		ContextTimeoutEnabled: true, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer func() { _ = client.Close() }()
	return client.Set(ctx, r.Key, "witness", keyLife).Err()
}

// keyLife is how long the key of a witness lasts, so that it cleans up behind itself.
const keyLife = time.Minute

func (Redis) reason(err error) Reason {
	var told goredis.Error
	if !errors.As(err, &told) {
		return Unreachable
	}
	switch code, _, _ := strings.Cut(told.Error(), " "); code {
	case "WRONGPASS":
		return WrongPassword
	case "NOPERM":
		return Denied
	case "LOADING", "BUSY", "MASTERDOWN", "READONLY", "OOM":
		return Unavailable
	default:
		return Other
	}
}
