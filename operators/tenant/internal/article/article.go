// Package article is the tenant operator that this one is not: the handlers of the two articles that the project began with, as they
// stand there, for a PostgreSQL, a Redis and a store of parameters. Tests show that a witness of traffic fails against them, so
// that it means something when it does not fail.
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

// Parameters is a store of values by name, where putting overwrites.
type Parameters struct {
	mu     sync.Mutex
	values map[string]credential.Password
}

// Get returns a value: the zero one if there is none.
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

// Operator has the handlers, and the connections of an administrator.
type Operator struct {
	Postgres   *pgx.Conn
	Redis      *goredis.Client
	Parameters *Parameters
}

// Database and Cache are the names of a tenant's parameters.
func Database(tenant string) string { return "/" + tenant + "/db" }

// Cache is the name of the parameter with the password of the tenant's user of the cache.
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

// OnCreateChecked is the handler of the second article: it does nothing if all three layers have what they should, and else all of it.
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
		return false, fmt.Errorf("look for the role: %w", err)
	}
	return found, nil
}

func (o Operator) hasUser(ctx context.Context, tenant string) (bool, error) {
	err := o.Redis.Do(ctx, "ACL", "GETUSER", tenant).Err()
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the user: %w", err)
	}
	return true, nil
}

// setRole creates the role, or alters the one that there is.
func (o Operator) setRole(ctx context.Context, tenant string, password credential.Password) error {
	found, err := o.hasRole(ctx, tenant)
	if err != nil {
		return err
	}
	verb := "CREATE"
	if found {
		verb = "ALTER"
	}
	// A generated password has letters and digits alone.
	statement := fmt.Sprintf("%s ROLE %s LOGIN PASSWORD '%s'", verb, pgx.Identifier{tenant}.Sanitize(), password.Reveal())
	if _, err := o.Postgres.Exec(ctx, statement); err != nil {
		return fmt.Errorf("set the role: %w", err)
	}
	return nil
}
