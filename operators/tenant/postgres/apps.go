package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/einmal-operators/einmal/credential"
)

// Apps returns the sorted names of the apps of a tenant that have logins in the server. The owner is that of the tenant. A login belongs to
// an app if the mark in its comment is the owner, a slash and the name of the app, even if it cannot log in. So Apps also finds apps that
// the Tenant no longer lists.
func (s *Server) Apps(ctx context.Context, owner credential.Owner) ([]string, error) {
	var apps []string
	err := s.look(ctx, func(ctx context.Context, on *pgxpool.Conn) error {
		rows, err := on.Query(ctx, `SELECT DISTINCT split_part(substr(description, length($1) + 1), ' ', 1) COLLATE "C" AS app
			FROM pg_shdescription JOIN pg_roles ON pg_roles.oid = objoid
			WHERE classoid = 'pg_authid'::regclass AND starts_with(description, $1) AND strpos(split_part(substr(description, length($1) + 1), ' ', 1), '/') = 0
			ORDER BY app`, owner.String()+"/")
		if err != nil {
			return err
		}
		apps, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the apps of %s: %w", owner, err)
	}
	return apps, nil
}
