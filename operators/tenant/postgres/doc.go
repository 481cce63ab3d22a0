// Package postgres manages the databases, roles and logins of tenants in a PostgreSQL server of version 15 or later (ErrVersion). It connects as an
// administrator with the rights CREATEROLE and CREATEDB. A superuser is not needed, because managed servers do not give that right. It was
// tried with versions 15 to 18.
//
//	pg := postgres.Open(config)           a server, reached as an administrator
//	pg.Tenant(names)                      a tenant: its database, the role that owns it, the roles that read and write
//	    .Converge  .Delete
//	pg.Logins(names)                      an app's two logins: a credential.Rotator
//	    .Observe .Create .Set .Superseded .Retire    the methods that package credential calls
//	    .Converge                                    plan limits and access, level-based; never a password
//	    .Delete
//
// Every method observes the server, computes the difference, and writes only that. An interrupted call is completed by the next one. The
// server holds the only state: names come from package names, and a COMMENT on each role is its ownership mark. A role with the mark of
// another owner is never changed. A role without a mark is changed only on request.
//
// An app logs in as one of two roles, t_<tenant>_<app>_a and _b, and switches at once to the role of its access (ALTER ROLE … SET role):
// the owner, or one of those that read and write. So what it creates belongs to the tenant and not to the login, and the login can be
// dropped.
//
// A tenant's database accepts only the tenant's own roles. Databases that others created accept every role unless their owners forbid it.
// For postgres and template1, run REVOKE CONNECT, TEMPORARY ON DATABASE … FROM PUBLIC as a superuser, and GRANT CONNECT to the
// administrator.
//
// A tenant is not trusted. It owns its database, where it can create functions, change settings and hold locks, and it can change its own
// password. Therefore each connection has a search_path of its own, verifying a login executes no statement, a revocation ends the sessions
// of the login that block it, a deletion those of all tenants, and what the owner of a database can block is ErrIncomplete, which does not stop work on logins.
//
// Since version 16 the administrator can change a role only if it has the ADMIN option on it, as the creator of a role does. In version 15
// it grants itself that option on every role that it creates, which CREATEROLE allows there, so that it still has it after an upgrade.
//
// No statement contains a password: roles get a SCRAM-SHA-256 verifier that is computed here. Nothing else keeps passwords out of the
// server's log, because an administrator that is not a superuser cannot turn logging off.
//
// Errors name the operation, contain no password, and give a remedy: see ErrRights, ErrVersion, ErrInsecure, ErrLocked, ErrBusy, ErrInUse, ErrDown
// and ErrDependent. No error means that an object does not exist; only the catalog shows that.
package postgres
