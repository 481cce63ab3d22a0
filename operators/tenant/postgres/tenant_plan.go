package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/credential"
)

// plan returns the statements of the next transaction that is needed until the roles and the database exist, or none. The caller must
// observe again after each transaction: CREATE DATABASE cannot run inside one, and later statements depend on it.
func (t Tenant) plan(owner credential.Owner, seen tenantSeen) ([]string, error) {
	if err := t.conflicts(owner, seen); err != nil {
		return nil, err
	}
	if statements := t.planRoles(owner, seen.Roles); len(statements) > 0 {
		return statements, nil
	}
	if seen.Database == nil {
		// template0 cannot be changed or connected to.
		return []string{fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0", identifier(t.Database), identifier(t.Owner))}, nil
	}
	return t.planOwner(*seen.Database), nil
}

// planOwner takes the database back from a role of the tenant that its owner has given it to (REASSIGN OWNED).
func (t Tenant) planOwner(seen databaseSeen) []string {
	if seen.Owner == t.Owner {
		return nil
	}
	back := []string{lockWait, "ALTER DATABASE " + identifier(t.Database) + " OWNER TO " + identifier(t.Owner)}
	return actor{seen.Owner, seen.OwnerUsable}.executes(back...) // Requires the rights of the present owner.
}

// isOwn reports whether the database belongs to a role of the tenant, which has the mark: its owner, another of its roles, or a login of one of its
// apps.
func (t Tenant) isOwn(mark string, seen databaseSeen) bool {
	if seen.Owner == t.Owner {
		return true
	}
	if seen.OwnerMark == nil {
		return false
	}
	of := parseComment(*seen.OwnerMark).mark
	return of == mark || strings.HasPrefix(of, mark+"/")
}

// complete reports whether all roles of the tenant exist. Conflicts with their marks come first.
func (t Tenant) complete(seen tenantSeen) bool { return len(seen.Roles) == len(t.roles()) }

// conflicts returns an error for a role or database that does not belong to the owner.
func (t Tenant) conflicts(owner credential.Owner, seen tenantSeen) error {
	for _, name := range t.roles() {
		role, there := seen.Roles[name]
		switch {
		case !there, role.Mark != nil && *role.Mark == owner.String():
		case role.Mark != nil:
			return foreign(name, role.Mark, owner)
		case !t.Adopt:
			return fmt.Errorf("role %s has no ownership mark: %w; drop it if it is not needed, or set adoptionPolicy to Adopt", name, credential.ErrConflict)
		}
	}
	switch {
	case seen.Database == nil:
		return nil
	case !t.isOwn(owner.String(), *seen.Database):
		err := fmt.Errorf("database %s belongs to role %s, want %s: %w; change its owner or rename it",
			t.Database, seen.Database.Owner, t.Owner, credential.ErrConflict)
		if t.complete(seen) { // The logins need only their own marks.
			return incomplete(err)
		}
		return err
	case !seen.Database.Valid:
		return fmt.Errorf("an interrupted DROP DATABASE left an unusable database; run DROP DATABASE %s", identifier(t.Database))
	}
	return nil
}

// planRoles creates missing roles, marks them, and gives the administrator the rights to change them and to act as the owner role, because
// only a member of a role can give it a database. The rights on a new role are known only after the next observation.
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

// planRights grants access to the database only to the tenant's roles, and keeps it open for them: its owner could otherwise lock out its
// own apps and the administrator. Connections are limited for each login.
func (t Tenant) planRights(seen databaseSeen) []string {
	var statements []string
	if !seen.Open || seen.Limit != unlimited || seen.Template {
		statements = append(statements, "ALTER DATABASE "+identifier(t.Database)+" ALLOW_CONNECTIONS true CONNECTION LIMIT -1 IS_TEMPLATE false")
	}
	on := object{" ON DATABASE " + identifier(t.Database), actor{seen.Owner, seen.OwnerUsable}}
	if slices.ContainsFunc(seen.Rights, func(one right) bool { return one.Who == "" }) {
		statements = append(statements, on.revoke("ALL", seen.Grantors)...)
	}
	return append(statements, on.grant(seen.Rights, []right{
		{t.Owner, "CONNECT"},
		{t.Owner, "CREATE"},
		{t.Owner, "TEMPORARY"},
		{t.ReadWrite, "CONNECT"},
		{t.ReadWrite, "TEMPORARY"},
		{t.ReadOnly, "CONNECT"},
	})...)
}

// object is a database or a schema, as the words that follow the privileges in GRANT and REVOKE, with its owner.
type object struct {
	on    string
	owner actor
}

// grant gives roles the privileges on the object that they do not have.
func (o object) grant(has, wanted []right) []string {
	var statements []string
	for _, want := range wanted {
		if !slices.Contains(has, want) {
			statements = append(statements, "GRANT "+want.What+o.on+" TO "+identifier(want.Who))
		}
	}
	return o.owner.becomes(statements...)
}

// revoke takes privileges on the object from PUBLIC: those that its owner has granted, and those of other grantors. PostgreSQL revokes only what
// the current role has granted and still has the grant option for, or a role whose rights it inherits, if the current role has no such option: which
// one is undefined, and a tenant can give the option to others, also to the administrator. GRANTED BY may only name the current role, and CASCADE
// leaves the grants of a role that inherits the owner's rights. So the administrator becomes the owner, and then each grantor, which gets the
// option for that and then loses the privileges.
func (o object) revoke(what string, grantors []grantor) []string {
	statements := o.owner.becomes("REVOKE " + what + o.on + " FROM PUBLIC")
	for _, one := range grantors {
		name := identifier(one.Name)
		statements = slices.Concat(
			statements,
			o.owner.becomes("GRANT "+one.Privileges+o.on+" TO "+name+" WITH GRANT OPTION"),
			actor{one.Name, one.Usable}.becomes("REVOKE "+one.Privileges+o.on+" FROM PUBLIC"),
			o.owner.becomes("REVOKE "+one.Privileges+o.on+" FROM "+name+" CASCADE"),
		)
	}
	return statements
}

// planInside gives the roles that read and write access to what the owner creates, and revokes CREATE on the schema public from PUBLIC.
// Further rights are left unchanged, because the tenant's owner can grant them.
func (t Tenant) planInside(seen insideSeen) []string {
	var statements []string
	if seen.Public != nil {
		on := object{" ON SCHEMA public", actor{seen.Public.Owner, seen.Public.OwnerUsable}}
		if slices.Contains(seen.Public.Rights, right{"", "CREATE"}) {
			statements = append(statements, on.revoke("CREATE", seen.Public.Grantors)...)
		}
		statements = append(statements, on.grant(seen.Public.Rights, []right{{t.ReadWrite, "USAGE"}, {t.ReadOnly, "USAGE"}})...)
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

// defaultRights are the default privileges of a role on what the owner creates.
type defaultRights struct {
	who string
	// kind is the object type in pg_default_acl, on its keyword in SQL.
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

// comment returns the statement that marks a role as the owner's.
func comment(role string, owner credential.Owner) string {
	return "COMMENT ON ROLE " + identifier(role) + " IS " + literal(owner.String())
}
