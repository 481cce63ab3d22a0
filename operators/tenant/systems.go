package main

import (
	"context"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// databases is a server in which each tenant has a database, and each app two logins.
type databases interface {
	// tenant is what the apps of a tenant share, as its spec asks for it.
	tenant(of names.Tenant, spec v1.TenantSpec) sharedDatabase
	// logins are those of an app, with what it may do and use.
	logins(of names.App, limits postgres.Limits, wants v1.App, spec v1.TenantSpec) logins
	// apps are those whose logins carry the mark of an owner, which is that of a tenant.
	apps(ctx context.Context, owner credential.Owner) ([]string, error)
	check(ctx context.Context) error
	close()
}

// sharedDatabase is a database, and the roles that own and use what is in it. See postgres.Tenant.
type sharedDatabase interface {
	Converge(ctx context.Context, owner credential.Owner) (bool, error)
	Delete(ctx context.Context, owner credential.Owner) error
}

// logins are what an app logs in to its database as. See postgres.Logins.
type logins interface {
	credential.Rotator
	Converge(ctx context.Context, owner credential.Owner, usernames ...string) (bool, error)
	Delete(ctx context.Context, owner credential.Owner, usernames ...string) error
}

// cache is a system in which each app has one user.
type cache interface {
	// users are the users with the access of an app, and the name of the app's.
	users(of names.App, wants v1.App, spec v1.TenantSpec) (cacheUsers, string)
	// apps are those of a tenant whose users carry the mark of their owner.
	apps(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error)
	check(ctx context.Context) error
	// forgetful are the addresses of the nodes that forget their users when they restart.
	forgetful(ctx context.Context) ([]string, error)
	close() error
}

// cacheUsers are users of a cache. See redis.Users.
type cacheUsers interface {
	credential.Rotator
	ConvergeAccess(ctx context.Context, owner credential.Owner, username string) (bool, error)
	// Scripting reports whether a user of the owner may run scripts now.
	Scripting(ctx context.Context, owner credential.Owner, username string) (bool, error)
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
