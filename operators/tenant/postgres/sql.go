package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// executor is a pool or a connection.
type executor interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, arguments ...any) pgx.Row
}

// identifier quotes a name for a statement: those of roles and databases take no parameters.
func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a text for a statement. It is for sessions with standard_conforming_strings, as a Server's are.
func literal(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "'", "''") + "'"
}

// identifiers quotes names, separated by commas.
func identifiers(names ...string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = identifier(name)
	}
	return strings.Join(quoted, ", ")
}
