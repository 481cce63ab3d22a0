package witness_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
)

// article has the naive handlers of two published articles about tenant provisioning, for PostgreSQL, Redis and a store of parameters. It is
// the negative control of the tests: the witness fails against these handlers, so its success against the real operator means something.
type article struct {
	postgres   *pgx.Conn // of an administrator
	redis      *goredis.Client
	parameters map[string]credential.Password
}

// databaseOf returns the name of the parameter with the password of the tenant's database.
func databaseOf(tenant string) string { return "/" + tenant + "/db" }

// cacheOf returns the name of the parameter with the password of the tenant's cache user.
func cacheOf(tenant string) string { return "/" + tenant + "/cache" }

// onCreate is the handler of the first article: "if the user already exists, its password is rotated".
func (a article) onCreate(ctx context.Context, tenant string) error {
	database, err := credential.Generate()
	if err != nil {
		return err
	}
	if err := a.setRole(ctx, tenant, database); err != nil {
		return err
	}
	a.parameters[databaseOf(tenant)] = database
	cache, err := credential.Generate()
	if err != nil {
		return err
	}
	rules := []string{"on", "resetpass", ">" + cache.Reveal(), "~" + tenant + ":*", "+@all", "-@dangerous"}
	if err := a.redis.ACLSetUser(ctx, tenant, rules...).Err(); err != nil {
		return fmt.Errorf("set the user: %w", err)
	}
	a.parameters[cacheOf(tenant)] = cache
	return nil
}

// onCreateChecked is the handler of the second article. It does nothing if all three systems have what they should, and otherwise
// everything.
func (a article) onCreateChecked(ctx context.Context, tenant string) error {
	role, err := a.hasRole(ctx, tenant)
	if err != nil {
		return err
	}
	user, err := a.hasUser(ctx, tenant)
	if err != nil {
		return err
	}
	stored := !a.parameters[databaseOf(tenant)].IsZero() && !a.parameters[cacheOf(tenant)].IsZero()
	if role && user && stored {
		return nil
	}
	return a.onCreate(ctx, tenant)
}

func (a article) hasRole(ctx context.Context, tenant string) (bool, error) {
	var found bool
	err := a.postgres.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", tenant).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("read role: %w", err)
	}
	return found, nil
}

func (a article) hasUser(ctx context.Context, tenant string) (bool, error) {
	err := a.redis.Do(ctx, "ACL", "GETUSER", tenant).Err()
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read user: %w", err)
	}
	return true, nil
}

// setRole creates the role, or alters an existing one.
func (a article) setRole(ctx context.Context, tenant string, password credential.Password) error {
	found, err := a.hasRole(ctx, tenant)
	if err != nil {
		return err
	}
	verb := "CREATE"
	if found {
		verb = "ALTER"
	}
	// A generated password contains only letters and digits, so it needs no quoting.
	statement := fmt.Sprintf("%s ROLE %s LOGIN PASSWORD '%s'", verb, pgx.Identifier{tenant}.Sanitize(), password.Reveal())
	if _, err := a.postgres.Exec(ctx, statement); err != nil {
		return fmt.Errorf("set the role: %w", err)
	}
	return nil
}
