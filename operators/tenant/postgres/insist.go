package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

const (
	// patience is how long a deletion waits for locks of other sessions before it ends the sessions of tenants, and how often it does so.
	patience = 2 * time.Second
	// shortWait and longWait limit how long a deletion waits for each lock: at the first attempt, and then.
	shortWait = "SET lock_timeout = '500ms'"
	longWait  = "SET lock_timeout = '10s'"
)

// blocker is a session with a lock that a deletion needs, or in a database that it drops.
type blocker struct {
	its      actor
	pid      int
	database string
	// tenant reports whether the role belongs to a tenant of the same operator.
	tenant bool
}

func (b blocker) String() string {
	return fmt.Sprintf("session %d of role %s in database %s", b.pid, b.its.role, b.database)
}

// listed returns the names of at most three sessions.
func listed(sessions []blocker) string {
	var names []string
	for i, one := range sessions {
		if i == 3 {
			return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", len(sessions)-i)
		}
		names = append(names, one.String())
	}
	return strings.Join(names, ", ")
}

// insist executes the statements of a deletion atomically in a database, "" for the administrator's. Each role may grant rights on what it owns to
// each role, and locks that role until it commits. So insist ends sessions, and rolls back prepared transactions, of tenants of the operator that
// block it for longer than patience. It does not end sessions of others; then the error names them.
func (s *Server) insist(ctx context.Context, owner credential.Owner, database string, statements ...string) error {
	err := s.session(ctx, owner, database, func(on *pgx.Conn) error { return waiting(ctx, on, shortWait, statements) })
	if codeOf(err) != lockTimeout {
		return err
	}
	select { // One at a time, so that blocked deletions leave connections to others.
	case s.blocked <- struct{}{}:
		defer func() { <-s.blocked }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.session(ctx, owner, database, func(on *pgx.Conn) error {
		blocked, done := context.WithCancel(ctx)
		others, pid := make(chan []blocker, 1), on.PgConn().PID()
		go func() { others <- s.unblock(blocked, owner, pid) }()
		err := waiting(ctx, on, longWait, statements)
		done()
		if left := <-others; codeOf(err) == lockTimeout && len(left) > 0 {
			return fmt.Errorf("%s holds the lock: %w", listed(left), err)
		}
		return err
	})
}

// session calls a function with a session in a database, "" for a session of the pool.
func (s *Server) session(ctx context.Context, owner credential.Owner, database string, do func(*pgx.Conn) error) error {
	if database != "" {
		return s.withinAnyway(ctx, owner, database, do)
	}
	connection, err := s.pool.Acquire(ctx)
	if err != nil {
		return explain(err)
	}
	defer connection.Release()
	err = do(connection.Conn())
	_, _ = connection.Exec(ctx, "RESET lock_timeout") // If it fails, the connection is closed.
	return err
}

// withinAnyway is within for what no tenant may hold up. If the connection hangs, it ends the sessions of tenants of the operator that block it.
func (s *Server) withinAnyway(ctx context.Context, owner credential.Owner, database string, do func(*pgx.Conn) error) error {
	leave, err := s.places.insist(ctx)
	if err != nil {
		return err
	}
	defer leave()
	connecting, connected := context.WithCancel(ctx)
	defer connected()
	go s.letIn(connecting, owner, database)
	return s.inside(ctx, database, func(on *pgx.Conn) error {
		connected()
		return do(on)
	})
}

// starting are the sessions that block one in the database $2 that has not started yet, because it waits for a lock on a system catalog.
const starting = `pid IN (SELECT unnest(pg_blocking_pids(waiting.pid)) FROM pg_locks waiting JOIN pg_database ON pg_database.oid = waiting.database
	WHERE datname = $2 AND NOT granted AND NOT EXISTS (SELECT FROM pg_stat_activity started
		WHERE started.pid = waiting.pid AND started.usesysid IS NOT NULL AND started.state IS DISTINCT FROM 'starting'))`

// letIn ends sessions of tenants that block connections to a database, until ctx is done. It ignores errors: then the connection hangs.
func (s *Server) letIn(ctx context.Context, owner credential.Owner, database string) {
	for wait(ctx, patience/2) == nil {
		found, err := s.sessions(ctx, owner, starting, database)
		if err != nil {
			continue
		}
		for _, one := range found {
			if one.tenant {
				_ = transaction(ctx, s.pool, one.its.executes(fmt.Sprintf(
					"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND pid = %d", literal(one.its.role), one.pid)))
			}
		}
	}
}

// waiting executes statements atomically and waits for each lock as long as limit says. DROP DATABASE must be alone, so the limit is not set in the
// same transaction.
func waiting(ctx context.Context, on *pgx.Conn, limit string, statements []string) error {
	if err := transaction(ctx, on, []string{limit}); err != nil {
		return err
	}
	return transaction(ctx, on, statements)
}

// unblock ends what blocks the session with the ID pid, again and again until ctx is done, and returns the sessions of others that it found last. It
// ignores errors: then the lock remains.
func (s *Server) unblock(ctx context.Context, owner credential.Owner, pid uint32) (others []blocker) {
	for wait(ctx, patience) == nil {
		ctx := context.WithoutCancel(ctx)
		found, err := s.sessions(ctx, owner, "pid = ANY(pg_blocking_pids($2))", int(pid))
		if err != nil {
			continue
		}
		others = slices.DeleteFunc(slices.Clone(found), func(one blocker) bool { return one.tenant })
		for _, one := range found {
			if one.tenant {
				_ = transaction(ctx, s.pool, one.its.executes(fmt.Sprintf(
					"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND pid = ANY(pg_blocking_pids(%d))", literal(one.its.role), pid)))
			}
		}
		_ = s.rollBack(ctx, owner, preparedBlockers, ofTenants(owner), pid)
	}
	return others
}

// ofTenants returns how the comments on the roles of all tenants of an operator begin.
func ofTenants(owner credential.Owner) string { return owner.Operator + "/" }

// sessions returns the sessions for which a condition holds. In it, $2 is the argument.
func (s *Server) sessions(ctx context.Context, owner credential.Owner, which string, argument any) (found []blocker, err error) {
	err = s.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		rows, err := on.Query(ctx, `SELECT pid, coalesce(usename::text, backend_type, ''), coalesce(datname::text, ''),
			coalesce(shobj_description(usesysid, 'pg_authid') ^@ $1, false), coalesce(`+uses+`, false)
			FROM pg_stat_activity LEFT JOIN pg_roles ON pg_roles.oid = usesysid WHERE `+which+` ORDER BY pid`, ofTenants(owner), argument)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (one blocker, err error) {
			return one, row.Scan(&one.pid, &one.its.role, &one.database, &one.tenant, &one.its.usable)
		})
		return err
	})
	return found, err
}

// inEach executes the statements of a deletion in several databases, "" for the administrator's. It opens databases of other tenants of the operator that their owners have
// closed.
func (s *Server) inEach(ctx context.Context, owner credential.Owner, databases, statements []string) error {
	for _, database := range databases {
		err := s.admit(ctx, owner, database)
		if err == nil {
			err = s.insist(ctx, owner, database, statements...)
		}
		switch {
		case err != nil && database == "":
			return err
		case err != nil:
			return fmt.Errorf("in database %s: %w", database, err)
		}
	}
	return nil
}

// admit opens a database to the administrator if it belongs to a tenant of the operator.
func (s *Server) admit(ctx context.Context, owner credential.Owner, database string) error {
	var its actor
	var open, may bool
	err := s.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		return on.QueryRow(ctx, `SELECT rolname, `+uses+`, open, may FROM pg_roles JOIN (SELECT datdba, datallowconn AND datconnlimit = -1 AS open,
			has_database_privilege(oid, 'CONNECT') AS may FROM pg_database WHERE datname = $1) AS database ON datdba = oid
			WHERE shobj_description(oid, 'pg_authid') ^@ $2`, database, ofTenants(owner)).Scan(&its.role, &its.usable, &open, &may)
	})
	var statements []string
	switch {
	case errors.Is(err, pgx.ErrNoRows): // It belongs to others.
		return nil
	case err != nil:
		return err
	case !open:
		statements = append(statements, "ALTER DATABASE "+identifier(database)+" ALLOW_CONNECTIONS true CONNECTION LIMIT -1")
		fallthrough
	case !may:
		statements = append(statements, "GRANT CONNECT ON DATABASE "+identifier(database)+" TO "+identifier(its.role))
	default:
		return nil
	}
	return transaction(ctx, s.pool, append([]string{lockWait}, its.executes(statements...)...))
}
