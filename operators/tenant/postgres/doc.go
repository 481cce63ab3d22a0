// Package postgres gives tenants what they have in a PostgreSQL server of version 15 or later, as an admin that has the rights CREATEROLE and
// CREATEDB and need not be a superuser, which is what managed servers give. It was tried with versions 15 to 18.
//
//	pg := postgres.Open(config)           a server, reached as an admin
//	pg.Tenant(names)                      a tenant: its database, the role that owns it, the roles that read and write
//	    .Converge  .Delete
//	pg.Logins(names)                      an app's two logins: a credential.Rotator
//	    .Observe .Create .Set .Superseded .Retire    what package credential asks for
//	    .Converge                                    plan limits and access, by level; never a password
//	    .Delete .Sessions .EndSessions
//
// Everything is looked at, decided and done, in this order: what is as it should be is not written again, and whatever ended too
// early is finished by the next call. Nothing is remembered but in the server: names come from package names, and a COMMENT on each role is
// the mark of its owner. What carries the mark of another is never changed; what carries none is only on request.
//
// An app logs in as one of two roles, t_<tenant>_<app>_a and _b, and at once works as the role of its access (ALTER ROLE … SET role): the owner,
// or one of those that read and write. So what it makes belongs to the tenant and not to the login, which can be dropped.
//
// A tenant's database lets in nobody but its own roles. Databases that others made let in everybody unless their owners say otherwise: of
// postgres and template1 run REVOKE CONNECT, TEMPORARY ON DATABASE … FROM PUBLIC as a superuser, and GRANT CONNECT to the admin.
//
// A tenant is not trusted. It owns its database, and can make functions, change settings and hold locks there, and change its own password. So each
// connection has a search_path of its own, the proof of a login executes no statement, a revocation ends the sessions that stand in its way,
// and what the owner of a database can hold up is ErrIncomplete, which stops no work on logins.
//
// From version 16 on the admin changes a role if it has the ADMIN option on it, as whoever makes a role has. In version 15 it gives itself
// that option on all that it makes, which CREATEROLE lets it do there, and not after an upgrade.
//
// No statement holds a password: roles are given a SCRAM-SHA-256 verifier, which is made here. That is the only protection of the server's
// log, as an admin that is no superuser cannot turn logging off.
//
// Errors name what was attempted, hold no password, and say what to do: see ErrRights, ErrVersion, ErrInsecure, ErrLocked, ErrBusy, ErrDown
// and ErrDependent. None of them says that something is absent; only the catalog does.
package postgres
