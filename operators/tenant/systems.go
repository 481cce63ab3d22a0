package main

import (
	"context"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// databases is a server in which each tenant has a database and each app has two logins.
type databases interface {
	// tenant returns what the apps of a tenant share, as its spec asks for it.
	tenant(of names.Tenant, spec v1.TenantSpec) sharedDatabase
	// logins returns the logins of an app with its access and limits.
	logins(of names.App, limits postgres.Limits, wants v1.App, spec v1.TenantSpec) logins
	// apps returns the apps whose logins carry the mark of the given tenant's owner.
	apps(ctx context.Context, owner credential.Owner) ([]string, error)
	check(ctx context.Context) error
	close()
}

// sharedDatabase is a database with the roles that own and use its contents. See postgres.Tenant.
type sharedDatabase interface {
	Converge(ctx context.Context, owner credential.Owner) (bool, error)
	DeleteDatabase(ctx context.Context, owner credential.Owner) error
	Delete(ctx context.Context, owner credential.Owner) error
}

// logins are the roles with which an app logs in to its database. See postgres.Logins.
type logins interface {
	credential.Rotator
	Converge(ctx context.Context, owner credential.Owner, usernames ...string) (bool, error)
	Shut(ctx context.Context, owner credential.Owner, usernames ...string) error
	Delete(ctx context.Context, owner credential.Owner, usernames ...string) error
}

// cache is a system in which each app has one user.
type cache interface {
	// users returns the users with the access of an app, and the name of the app's user.
	users(of names.App, wants v1.App, spec v1.TenantSpec) (cacheUsers, string)
	// apps returns the apps of a tenant whose users carry their owner's mark.
	apps(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error)
	check(ctx context.Context) error
	// forgetful returns the addresses of the nodes that lose their users in a restart.
	forgetful(ctx context.Context) ([]string, error)
	close() error
}

// cacheUsers are users of a cache. See redis.Users.
type cacheUsers interface {
	credential.Rotator
	ConvergeAccess(ctx context.Context, owner credential.Owner, username string) (bool, error)
	Delete(ctx context.Context, owner credential.Owner, username string) error
}

// postgresServer is a PostgreSQL server.
type postgresServer struct{ *postgres.Server }

func (s postgresServer) tenant(of names.Tenant, spec v1.TenantSpec) sharedDatabase {
	wanted := s.Tenant(of)
	wanted.Adopt, wanted.DropDatabase = spec.AdoptionPolicy == v1.AdoptionAdopt, spec.DropOwned
	return wanted
}

func (s postgresServer) logins(of names.App, limits postgres.Limits, wants v1.App, spec v1.TenantSpec) logins {
	return s.loginsOf(of, limits, wants, spec)
}

func (s postgresServer) loginsOf(of names.App, limits postgres.Limits, wants v1.App, spec v1.TenantSpec) postgres.Logins {
	made := s.Logins(of)
	made.Access, made.Limits = postgres.Access(wants.Database.Access), limits
	made.Terminate, made.DropOwned = spec.Credentials.Rotation.TerminateSessions, spec.DropOwned
	return made
}

func (s postgresServer) apps(ctx context.Context, owner credential.Owner) ([]string, error) {
	return s.Apps(ctx, owner)
}

func (s postgresServer) check(ctx context.Context) error { return s.Check(ctx) }

func (s postgresServer) close() { s.Close() }
