package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/credential"
)

// plan returns the statements of the next transaction that is due until the roles and the database are there, none if they are. After it one
// looks again: no transaction can hold CREATE DATABASE, and what comes behind it depends on it.
func (t Tenant) plan(owner credential.Owner, seen tenantSeen) ([]string, error) {
	if err := t.conflicts(owner, seen); err != nil {
		return nil, err
	}
	if statements := t.planRoles(owner, seen.Roles); len(statements) > 0 {
		return statements, nil
	}
	if seen.Database == nil {
		// template0, as nobody can have changed that, or be connected to it.
		return []string{fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0", identifier(t.Database), identifier(t.Owner))}, nil
	}
	return nil, nil
}

// conflicts finds what is not the owner's.
func (t Tenant) conflicts(owner credential.Owner, seen tenantSeen) error {
	for _, name := range t.roles() {
		role, there := seen.Roles[name]
		switch {
		case !there, role.Mark != nil && *role.Mark == owner.String():
		case role.Mark != nil:
			return fmt.Errorf("the role %s has the comment %q, not %q: %w; it stays as it is", name, *role.Mark, owner, credential.ErrConflict)
		case !t.Adopt:
			return fmt.Errorf("the role %s has no mark of its owner: %w; drop it if nobody needs it, or allow to adopt it", name, credential.ErrConflict)
		}
	}
	switch {
	case seen.Database == nil:
		return nil
	case seen.Database.Owner != t.Owner:
		return fmt.Errorf("the database %s belongs to the role %s, not %s: %w; give it to that, or rename it",
			t.Database, seen.Database.Owner, t.Owner, credential.ErrConflict)
	case !seen.Database.Valid:
		return fmt.Errorf("a DROP DATABASE did not end, and left nothing that can be used: run DROP DATABASE %s", identifier(t.Database))
	}
	return nil
}

// planRoles makes the roles that are missing, marks them, and lets the admin administer them, and act for the owner: to give a database
// to a role one has to be a member of it. What the admin may do with a role that is made is known by the next look.
func (t Tenant) planRoles(owner credential.Owner, seen map[string]roleSeen) []string {
	var statements []string
	for _, name := range t.roles() {
		role, there := seen[name]
		if !there {
			statements = append(statements, "CREATE ROLE "+identifier(name)+" NOLOGIN")
		}
		if role.Mark == nil {
			statements = append(statements, comment(name, owner))
		}
		switch {
		case !there:
		case !role.Administered:
			statements = append(statements, administer(name))
		case name == t.Owner && !role.Usable:
			statements = append(statements, use(name)...)
		}
	}
	return statements
}

// planRights closes the database to all but the tenant's roles, and keeps it open to those: its owner could close it to its own apps and to the
// admin. Connections are limited by login.
func (t Tenant) planRights(seen databaseSeen) []string {
	var statements []string
	on := " ON DATABASE " + identifier(t.Database)
	if !seen.Open || seen.Limit != unlimited {
		statements = append(statements, "ALTER DATABASE "+identifier(t.Database)+" ALLOW_CONNECTIONS true CONNECTION LIMIT -1")
	}
	if slices.ContainsFunc(seen.Rights, func(one right) bool { return one.Who == "" }) {
		statements = append(statements, "REVOKE ALL"+on+" FROM PUBLIC")
	}
	for _, want := range []right{
		{t.Owner, "CONNECT"},
		{t.Owner, "CREATE"},
		{t.Owner, "TEMPORARY"},
		{t.ReadWrite, "CONNECT"},
		{t.ReadWrite, "TEMPORARY"},
		{t.ReadOnly, "CONNECT"},
	} {
		if !slices.Contains(seen.Rights, want) {
			statements = append(statements, "GRANT "+want.What+on+" TO "+identifier(want.Who))
		}
	}
	return statements
}

// planInside lets the roles that read and write see what the owner makes, and nobody else make anything in the schema public.
// Rights beyond that are left: the tenant's owner can give them.
func (t Tenant) planInside(seen insideSeen) []string {
	var statements []string
	if seen.Public != nil {
		if slices.Contains(seen.Public, right{"", "CREATE"}) {
			statements = append(statements, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
		}
		for _, who := range []string{t.ReadWrite, t.ReadOnly} {
			if !slices.Contains(seen.Public, right{who, "USAGE"}) {
				statements = append(statements, "GRANT USAGE ON SCHEMA public TO "+identifier(who))
			}
		}
	}
	for _, give := range t.defaults() {
		missing := slices.DeleteFunc(slices.Clone(give.rights), func(what string) bool {
			return slices.Contains(seen.Defaults, right{give.who, give.kind + " " + what})
		})
		if len(missing) > 0 {
			statements = append(statements, fmt.Sprintf("ALTER DEFAULT PRIVILEGES FOR ROLE %s GRANT %s ON %s TO %s",
				identifier(t.Owner), strings.Join(missing, ", "), give.on, identifier(give.who)))
		}
	}
	return statements
}

// defaultRights are those that a role gets to what the owner makes.
type defaultRights struct {
	who string
	// kind is that of pg_default_acl, on is how it is said.
	kind, on string
	rights   []string
}

func (t Tenant) defaults() []defaultRights {
	return []defaultRights{
		{t.ReadWrite, "n", "SCHEMAS", []string{"USAGE"}},
		{t.ReadWrite, "r", "TABLES", []string{"SELECT", "INSERT", "UPDATE", "DELETE"}},
		{t.ReadWrite, "S", "SEQUENCES", []string{"SELECT", "USAGE", "UPDATE"}},
		{t.ReadOnly, "n", "SCHEMAS", []string{"USAGE"}},
		{t.ReadOnly, "r", "TABLES", []string{"SELECT"}},
		{t.ReadOnly, "S", "SEQUENCES", []string{"SELECT"}},
	}
}

// comment marks a role as the owner's.
func comment(role string, owner credential.Owner) string {
	return "COMMENT ON ROLE " + identifier(role) + " IS " + literal(owner.String())
}
