package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// Which prepared transactions are rolled back: see rollBack.
const (
	// everyPrepared are all of the roles $1.
	everyPrepared = "owner = ANY($1)"
	// preparedWriters have written to a shared catalog, as a change of a role does.
	preparedWriters = everyPrepared + ` AND EXISTS (` + preparedLocks + ` AND held.locktype = 'relation' AND held.database = 0
		AND held.mode <> 'AccessShareLock')`
	// preparedBlockers hold a lock that the session with the ID $2 waits for. Their owners have a comment that begins with $1.
	preparedBlockers = `shobj_description(pg_roles.oid, 'pg_authid') ^@ $1 AND EXISTS (` + preparedLocks + ` AND EXISTS (
		SELECT FROM pg_locks awaited WHERE awaited.pid = $2 AND NOT awaited.granted AND
			(awaited.locktype, awaited.database, awaited.relation, awaited.transactionid, awaited.classid, awaited.objid) IS NOT DISTINCT FROM
			(held.locktype, held.database, held.relation, held.transactionid, held.classid, held.objid)))`
	// preparedLocks is a query for the locks of a prepared transaction.
	preparedLocks = `SELECT FROM pg_locks own JOIN pg_locks held USING (virtualtransaction)
		WHERE own.transactionid = pg_prepared_xacts.transaction AND own.pid IS NULL AND held.pid IS NULL`
)

// prepared is a prepared transaction (PREPARE TRANSACTION). It holds its locks without a session, also after a restart of the server.
type prepared struct {
	id, owner, database string
	// usable is roleSeen.Usable of its owner.
	usable bool
}

// rollBack rolls prepared transactions back. Only their owners may do that, in the database in which they were prepared.
func (s *Server) rollBack(ctx context.Context, owner credential.Owner, which string, arguments ...any) error {
	var found []prepared
	err := s.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		rows, err := on.Query(ctx, `SELECT gid, owner::text, database::text, `+uses+` FROM pg_prepared_xacts JOIN pg_roles ON rolname = owner
			WHERE `+which, arguments...)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (one prepared, err error) {
			return one, row.Scan(&one.id, &one.owner, &one.database, &one.usable)
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range found {
		if err := s.withinAnyway(ctx, owner, one.database, func(inside *pgx.Conn) error { return one.rollBack(ctx, inside) }); err != nil && !gone(err) {
			return fmt.Errorf("roll back the prepared transaction %q of role %s in database %s: %w", one.id, one.owner, one.database, err)
		}
	}
	return nil
}

// rollBack rolls it back in a session in its database. ROLLBACK PREPARED cannot be in a transaction.
func (p prepared) rollBack(ctx context.Context, inside *pgx.Conn) error {
	steps := [][]string{{"SET ROLE " + identifier(p.owner)}, {"ROLLBACK PREPARED " + literal(p.id)}}
	if !p.usable {
		steps = append(append([][]string{use(p.owner)}, steps...), []string{"RESET ROLE", "REVOKE " + identifier(p.owner) + " FROM CURRENT_USER"})
	}
	for _, step := range steps {
		if err := transaction(ctx, inside, step); err != nil {
			return err
		}
	}
	return nil
}
