package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// The kinds of errors. Each error that has one of these kinds also gives a remedy.
var (
	// ErrRights: the administrator lacks a right or cannot log in. The error stays until a person acts.
	ErrRights = errors.New("the administrator lacks a right")
	// ErrVersion: the server is older than 15.10, 16.6 or 17.2. Nothing was requested from it. The error stays until a person upgrades it.
	ErrVersion = errors.New("the server is too old")
	// ErrPooler: the address is that of a connection pooler. No statement with the administrator's rights was executed. The error stays until a person
	// acts.
	ErrPooler = errors.New("the address is that of a connection pooler")
	// ErrInsecure: the server does not require SCRAM-SHA-256 authentication, or requires no password. It received no password. The error
	// stays until a person acts.
	ErrInsecure = errors.New("the server does not authenticate securely")
	// ErrLocked: another session holds a lock that is needed. Retry later. The lock can stay until an administrator ends that session. Delete ends
	// sessions of tenants itself, and names the others.
	ErrLocked = errors.New("another session holds a lock")
	// ErrIncomplete: the tenant has its database and its roles, but rights on the database or in it could not be corrected. Logins can be
	// converged.
	ErrIncomplete = errors.New("the rights in the database are incomplete")
	// ErrBusy: the server has no capacity, or other sessions hold what is needed. Retry later.
	ErrBusy = errors.New("the server is busy")
	// ErrInUse: sessions or prepared transactions of others use the database, and the administrator may not end them. Retry later. It can stay until a
	// person ends them. It is an ErrBusy.
	ErrInUse = fmt.Errorf("%w: others use the database", ErrBusy)
	// ErrSessions: sessions of a login were told to end, and have not. The login has its new password, or cannot log in. Retry later.
	ErrSessions = errors.New("sessions do not end")
	// ErrHangs: connections to a database of a tenant hang. The server answers. Retry later.
	ErrHangs = errors.New("connections to the database hang")
	// ErrDown: the server cannot be reached, is starting or stopping, or cannot write now. Retry later.
	ErrDown = errors.New("the server is down")
	// ErrDependent: an object that is to be dropped has dependent objects. No data was lost. The error stays until a person decides.
	ErrDependent = errors.New("other objects depend on it")
)

// The error codes that this package distinguishes (PostgreSQL documentation, appendix "PostgreSQL Error Codes").
const (
	wrongPassword      = "28P01" // invalid_password
	notAllowed         = "28000" // invalid_authorization_specification: NOLOGIN, pg_hba.conf
	duplicateObject    = "42710" // duplicate_object: the role already exists
	duplicateDatabase  = "42P04" // duplicate_database
	uniqueViolation    = "23505" // unique_violation: the role or database was created at the same time
	outOfMemory        = "53200" // out_of_memory: of the server, or of its table of locks
	serialization      = "40001" // serialization_failure
	deadlock           = "40P01" // deadlock_detected
	internalError      = "XX000" // internal_error: includes concurrent updates of a tuple, and a role that was dropped at the same time
	noRights           = "42501" // insufficient_privilege
	dependent          = "2BP01" // dependent_objects_still_exist
	undefinedObject    = "42704" // undefined_object
	undefinedDatabase  = "3D000" // invalid_catalog_name
	readOnly           = "25006" // read_only_sql_transaction
	lockTimeout        = "55P03" // lock_not_available
	inUse              = "55006" // object_in_use
	tooManyConnections = "53300" // too_many_connections: of the server, the database or the role
	canceled           = "57014" // query_canceled: includes statement_timeout
)

// codeOf returns the error code of the server's answer, or "" if the server did not answer.
func codeOf(err error) string {
	if answer, is := errors.AsType[*pgconn.PgError](err); is {
		return answer.Code
	}
	return ""
}

// taken reports whether a name exists already, even if another session created it only a moment before.
func taken(err error) bool {
	code := codeOf(err)
	return code == duplicateObject || code == duplicateDatabase || code == uniqueViolation
}

// gone reports whether an object that should be dropped does not exist any more.
func gone(err error) bool {
	code := codeOf(err)
	return code == undefinedObject || code == undefinedDatabase
}

// raced reports whether another session changed the same objects at the same time, so that the caller must observe and try again.
func raced(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Code {
	case serialization, deadlock:
		return true
	case internalError:
		return strings.Contains(answer.Message, "tuple concurrently") || strings.Contains(answer.Message, "could not find tuple for role")
	}
	return taken(err)
}

// explain adds a kind and a remedy to an error of the server or of the connection. It wraps the error, so that codeOf still finds the code.
func explain(err error) error {
	var answer *pgconn.PgError
	var old oldServerError
	var pooler poolerError
	var long *pgproto3.ExceededMaxBodyLenErr
	if hangs, is := errors.AsType[hangsError](err); is {
		return hangsError{hangs.database, shorten(hangs.cause)}
	}
	err = shorten(err)
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &old):
		return old
	case errors.As(err, &pooler):
		return pooler
	case errors.As(err, &long): // A tenant can cause it. So it says nothing of the server.
		return fmt.Errorf("the server sent a message of more than %d bytes; reset large settings of the role and of its database: %w", longestMessage, err)
	case !errors.As(err, &answer) && strings.Contains(err.Error(), "authentication method requirement"): // pgx has no type for it.
		return fmt.Errorf("%w; set password_encryption and pg_hba.conf to scram-sha-256 and set the password again, or set "+
			"sslmode=verify-full in the DSN: %w", ErrInsecure, err)
	case !errors.As(err, &answer):
		return fmt.Errorf("%w; check that it runs and that the address in the DSN is correct: %w", ErrDown, err)
	}
	remedy, kind := kindOf(answer.Code)
	if answer.Code == noRights {
		remedy, kind = missingRight(answer)
	}
	if answer.Detail != "" {
		remedy += " (" + strings.ReplaceAll(answer.Detail, "\n", "; ") + ")"
	}
	if kind == nil {
		return fmt.Errorf("%w%s", err, remedy)
	}
	return fmt.Errorf("%w; %s: %w", kind, remedy, err)
}

// connectError is the error of an attempt to connect. Its text names addresses, and not the user and the database, which come from the DSN.
type connectError struct{ cause error }

func (c connectError) Error() string {
	return "connect to the server: " + strings.ReplaceAll(c.cause.Error(), "\n", "; ")
}

func (c connectError) Unwrap() error { return c.cause }

// shorten replaces the driver's error of an attempt to connect by a connectError.
func shorten(err error) error {
	if failed, is := errors.AsType[*pgconn.ConnectError](err); is {
		return connectError{failed.Unwrap()}
	}
	return err
}

// kindOf returns the kind of an error code and the remedy.
func kindOf(code string) (string, error) {
	switch code {
	case noRights:
		return "grant it CREATEROLE and CREATEDB, and for roles that it cannot change run GRANT role TO admin WITH ADMIN OPTION", ErrRights
	case wrongPassword, notAllowed:
		return "correct the user and the password in the DSN, or allow the login in pg_hba.conf", ErrRights
	case dependent:
		return "reassign or drop the dependent objects, or set dropOwned to true", ErrDependent
	case undefinedObject:
		return "; converge the tenant first, which creates the roles of the logins", nil
	case readOnly:
		return "it is a standby or read-only; point the DSN to the primary", ErrDown
	case lockTimeout:
		return "the operation is retried; if the error stays, find the session that holds the lock in pg_locks and pg_stat_activity, and end it", ErrLocked
	case inUse:
		return "the operation is retried; if the error stays, find the session in pg_stat_activity and the transaction in pg_prepared_xacts, and end it; " +
			"for a session of a superuser, run as a superuser: SELECT pg_terminate_backend(pid)", ErrInUse
	case canceled:
		return "the operation is retried; if the error stays, find the blocking session in pg_stat_activity", ErrBusy
	}
	switch {
	case code == outOfMemory:
		return "the operation is retried; if the error stays, raise max_locks_per_transaction, because each table and index needs a lock, or add memory", ErrBusy
	case strings.HasPrefix(code, "53"):
		return "the operation is retried; if the error stays, raise max_connections or the connection limit of the role, or add memory or disk space", ErrBusy
	case strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"):
		return "the operation is retried; check that the server runs", ErrDown
	}
	return "", nil
}
