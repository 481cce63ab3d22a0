package postgres

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// refusal is a group of the server's messages with the code 42501 that have one remedy.
type refusal struct {
	// routines are functions of the server that report only such errors. Their names do not depend on the server's language.
	routines []string
	// words are parts of the message or of the detail, in lower case.
	words  []string
	remedy string
	kind   error
}

// refusals returns the groups of messages. The first match applies.
func refusals() []refusal {
	return []refusal{
		{
			words: []string{"terminate superuser process", "processes of roles with the superuser attribute"},
			remedy: "a superuser has a session, which the administrator may not end; end the session yourself: as a superuser, find it in " +
				"pg_stat_activity and run SELECT pg_terminate_backend(pid); or wait until its client closes it",
			kind: ErrInUse,
		},
		{
			routines: []string{"TerminateOtherDBBackends", "pg_terminate_backend"}, words: []string{"terminat"},
			remedy: "the administrator may not end a session of another role; end the session yourself: as a superuser, find it in pg_stat_activity and run " +
				"SELECT pg_terminate_backend(pid); or run GRANT pg_signal_backend TO the administrator",
			kind: ErrRights,
		},
		{
			routines: []string{"LockGXact"}, words: []string{"prepared transaction"},
			remedy: "the administrator may not end a prepared transaction; find it in pg_prepared_xacts and run ROLLBACK PREPARED or COMMIT PREPARED " +
				"as a superuser, or as the user that prepared it",
			kind: ErrInUse,
		},
		{words: []string{"to create role"}, remedy: "as a superuser, grant it CREATEROLE", kind: ErrRights},
		{words: []string{"to create database"}, remedy: "as a superuser, grant it CREATEDB", kind: ErrRights},
		{
			words:  []string{"to set parameter", "to set session authorization"},
			remedy: "remove the parameter from the DSN, or run as a superuser: GRANT SET ON PARAMETER name TO the administrator", kind: ErrRights,
		},
		{
			words:  []string{"to set role", "must be able to set role", "must be member of role"},
			remedy: "run GRANT role TO the administrator, as a superuser or with the ADMIN option on that role", kind: ErrRights,
		},
		{
			words: []string{"superuser", "replication", "bypassrls"},
			remedy: "a role has an attribute that only a superuser can change: SUPERUSER, REPLICATION or BYPASSRLS; " +
				"remove the attribute from the role as a superuser, or choose another name for the tenant", kind: ErrRights,
		},
		{words: []string{"must be owner of"}, remedy: "run GRANT role TO the administrator, with the role that owns the object", kind: ErrRights},
		{
			words: []string{
				"denied for database", "denied for schema", "denied for tablespace", "denied for table", "denied for function", "denied for large object",
				"denied for view", "denied for sequence",
			},
			remedy: "grant the administrator the right on the object that the message names, as the owner of the object", kind: ErrRights,
		},
	}
}

// missingRight returns the remedy and the kind of a refusal with the code 42501.
func missingRight(answer *pgconn.PgError) (string, error) {
	text := strings.ToLower(unquoted(answer.Message) + "; " + unquoted(answer.Detail))
	for _, one := range refusals() {
		matches := func(word string) bool { return strings.Contains(text, word) }
		if slices.Contains(one.routines, answer.Routine) || slices.ContainsFunc(one.words, matches) {
			return one.remedy, one.kind
		}
	}
	return kindOf(answer.Code)
}

// unquoted returns a text without the names in double quotes, which tenants choose.
func unquoted(text string) string {
	var kept strings.Builder
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 0 {
			kept.WriteString(part)
		}
	}
	return kept.String()
}
