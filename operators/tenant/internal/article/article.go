// Package article contains the naive handlers of two published articles about tenant provisioning, for PostgreSQL, Redis and a parameter
// store. It is the negative control of the tests: they show that the login witness fails against these handlers, so its success against the
// real operator means something.
package article

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
)

// Parameters is an in-memory store of values by name. Put overwrites.
type Parameters struct {
	mu     sync.Mutex
	values map[string]credential.Password
}

// Get returns a value, or the zero value.
func (p *Parameters) Get(name string) credential.Password {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.values[name]
}

// Put stores a value.
func (p *Parameters) Put(name string, value credential.Password) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.values == nil {
		p.values = map[string]credential.Password{}
	}
	p.values[name] = value
}

// Delete removes a value.
func (p *Parameters) Delete(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.values, name)
}

// Operator contains the handlers and the connections of an administrator.
type Operator struct {
	Postgres   *pgx.Conn
	Redis      *goredis.Client
	Parameters *Parameters
}

// Database returns the name of the parameter with the password of the tenant's database.
func Database(tenant string) string { return "/" + tenant + "/db" }

// Cache returns the name of the parameter with the password of the tenant's cache user.
func Cache(tenant string) string { return "/" + tenant + "/cache" }

// OnCreate is the handler of the first article: "if the user already exists, its password is rotated".
func (o Operator) OnCreate(ctx context.Context, tenant string) error {
	database, err := credential.Generate()
	if err != nil {
		return err
	}
	if err := o.setRole(ctx, tenant, database); err != nil {
		return err
	}
	o.Parameters.Put(Database(tenant), database)
	cache, err := credential.Generate()
	if err != nil {
		return err
	}
	rules := []string{"on", "resetpass", ">" + cache.Reveal(), "~" + tenant + ":*", "+@all", "-@dangerous"}
	if err := o.Redis.ACLSetUser(ctx, tenant, rules...).Err(); err != nil {
		return fmt.Errorf("set the user: %w", err)
	}
	o.Parameters.Put(Cache(tenant), cache)
	return nil
}

// OnCreateChecked is the handler of the second article. It does nothing if all three systems have what they should, and otherwise
// everything.
func (o Operator) OnCreateChecked(ctx context.Context, tenant string) error {
	role, err := o.hasRole(ctx, tenant)
	if err != nil {
		return err
	}
	user, err := o.hasUser(ctx, tenant)
	if err != nil {
		return err
	}
	stored := !o.Parameters.Get(Database(tenant)).IsZero() && !o.Parameters.Get(Cache(tenant)).IsZero()
	if role && user && stored {
		return nil
	}
	return o.OnCreate(ctx, tenant)
}

func (o Operator) hasRole(ctx context.Context, tenant string) (bool, error) {
	var found bool
	err := o.Postgres.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", tenant).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("read role: %w", err)
	}
	return found, nil
}

func (o Operator) hasUser(ctx context.Context, tenant string) (bool, error) {
	err := o.Redis.Do(ctx, "ACL", "GETUSER", tenant).Err()
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read user: %w", err)
	}
	return true, nil
}

// setRole creates the role, or alters an existing one.
func (o Operator) setRole(ctx context.Context, tenant string, password credential.Password) error {
	found, err := o.hasRole(ctx, tenant)
	if err != nil {
		return err
	}
	verb := "CREATE"
	if found {
		verb = "ALTER"
	}
	// A generated password contains only letters and digits, so it needs no quoting.
	statement := fmt.Sprintf("%s ROLE %s LOGIN PASSWORD '%s'", verb, pgx.Identifier{tenant}.Sanitize(), password.Reveal())
	if _, err := o.Postgres.Exec(ctx, statement); err != nil {
		return fmt.Errorf("set the role: %w", err)
	}
	return nil
}
