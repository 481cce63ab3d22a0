package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// What keeps a server from doing what it was asked for. Each error says what to do about it.
var (
	// ErrRights: the admin lacks a right, or may not log in. It stays until a person has changed that.
	ErrRights = errors.New("the admin lacks a right")
	// ErrVersion: the server is older than the oldest that is supported. Nothing was asked of it; it stays until a person has upgraded it.
	ErrVersion = errors.New("the server is too old")
	// ErrInsecure: the server does not ask for the password by SCRAM-SHA-256, or asks for none. It got no password. It stays until a person
	// has changed that.
	ErrInsecure = errors.New("the server does not authenticate securely")
	// ErrLocked: another session holds a lock that is needed. Try again later; the lock can stay until an administrator ends that session.
	ErrLocked = errors.New("another session holds a lock")
	// ErrIncomplete: the tenant has its database and its roles, and something about the rights to the database, or in it, could not be put
	// right. Logins can be converged.
	ErrIncomplete = errors.New("the rights in the database are incomplete")
	// ErrBusy: the server has no room or no time, or others hold what is needed. Try again later.
	ErrBusy = errors.New("the server is busy")
	// ErrDown: the server is not reached, starts, stops, or cannot write now. Try again later.
	ErrDown = errors.New("the server is down")
	// ErrDependent: what is to be dropped has something depending on it. Nothing was lost; it stays until a person has decided.
	ErrDependent = errors.New("something depends on it")
)

// The codes of errors that decide something (documentation of PostgreSQL, appendix "PostgreSQL Error Codes").
const (
	wrongPassword      = "28P01" // invalid_password
	notAllowed         = "28000" // invalid_authorization_specification: NOLOGIN, pg_hba.conf
	duplicateObject    = "42710" // duplicate_object: the role was there before
	duplicateDatabase  = "42P04" // duplicate_database
	uniqueViolation    = "23505" // unique_violation: the same, of a role or database that was made at the same time
	serialization      = "40001" // serialization_failure
	deadlock           = "40P01" // deadlock_detected
	internalError      = "XX000" // internal_error: among others of a tuple that another session changes
	noRights           = "42501" // insufficient_privilege
	dependent          = "2BP01" // dependent_objects_still_exist
	undefinedObject    = "42704" // undefined_object
	undefinedDatabase  = "3D000" // invalid_catalog_name
	readOnly           = "25006" // read_only_sql_transaction
	lockTimeout        = "55P03" // lock_not_available
	inUse              = "55006" // object_in_use
	tooManyConnections = "53300" // too_many_connections: of the server, the database or the role
	canceled           = "57014" // query_canceled: among others by statement_timeout
)

// codeOf is the code of the server's own answer; "" if the server did not answer.
func codeOf(err error) string {
	if answer, is := errors.AsType[*pgconn.PgError](err); is {
		return answer.Code
	}
	return ""
}

// taken tells that a name is: also if somebody was faster by a moment.
func taken(err error) bool {
	code := codeOf(err)
	return code == duplicateObject || code == duplicateDatabase || code == uniqueViolation
}

// gone tells that what was to be dropped is: somebody was faster.
func gone(err error) bool {
	code := codeOf(err)
	return code == undefinedObject || code == undefinedDatabase
}

// raced tells that others changed the same at the same time, so that another look and another try are due.
func raced(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Code {
	case serialization, deadlock:
		return true
	case internalError:
		return strings.Contains(answer.Message, "tuple concurrently")
	}
	return taken(err)
}

// explain gives an error of the server, or of the way to it, its kind, and what to do. It is wrapped, so that codeOf finds its code.
func explain(err error) error {
	var answer *pgconn.PgError
	var old oldServerError
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &old):
		return old
	case !errors.As(err, &answer) && strings.Contains(err.Error(), "authentication method requirement"): // pgx has no type for it.
		return fmt.Errorf("%w: set password_encryption and pg_hba.conf to scram-sha-256, and set the password again, or give the DSN "+
			"sslmode=verify-full: %w", ErrInsecure, err)
	case !errors.As(err, &answer):
		return fmt.Errorf("%w: see that it runs, and is reached at the address of the DSN: %w", ErrDown, err)
	}
	remedy, kind := kindOf(answer.Code)
	if answer.Detail != "" {
		remedy += " (" + strings.ReplaceAll(answer.Detail, "\n", "; ") + ")"
	}
	if kind == nil {
		return fmt.Errorf("%w%s", err, remedy)
	}
	return fmt.Errorf("%w: %s: %w", kind, remedy, err)
}

// kindOf sorts the server's answers, and tells what to do about each.
func kindOf(code string) (string, error) {
	switch code {
	case noRights:
		return "give it CREATEROLE and CREATEDB, and for roles that it may not change run GRANT role TO admin WITH ADMIN OPTION", ErrRights
	case wrongPassword, notAllowed:
		return "correct the user and the password in the DSN, or let pg_hba.conf allow it", ErrRights
	case dependent:
		return "hand over or drop what depends on it, or allow to drop what it owns", ErrDependent
	case undefinedObject:
		return ": converge the tenant first, which makes the roles that logins work as", nil
	case readOnly:
		return "it is a standby or set to read only: let the DSN lead to the primary", ErrDown
	case lockTimeout:
		return "it is tried again; if it stays, look for the session that holds it in pg_locks and pg_stat_activity, and end it", ErrLocked
	case inUse, canceled:
		return "it is tried again; if it stays, look for the session that holds it in pg_stat_activity", ErrBusy
	}
	switch {
	case strings.HasPrefix(code, "53"):
		return "it is tried again; if it stays, raise max_connections or the limit of the role, or give the server more room", ErrBusy
	case strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"):
		return "it is tried again; see that the server runs", ErrDown
	}
	return "", nil
}
