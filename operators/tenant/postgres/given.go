package postgres

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// The comment on a login is its ownership mark followed by the generation of the credential that it was last given. Logins of earlier releases
// have only the mark, which is still valid. See docs/decisions/0012-systems-keep-generations.md.

// commentGiven returns a comment with the ownership mark and the given credential.
func commentGiven(owner credential.Owner, given credential.Given) string {
	return fmt.Sprintf("%s generation=%d created=%s", owner, given.Generation, given.Created.UTC().Format(time.RFC3339))
}

// parseComment splits a comment into the ownership mark and the given credential, which is zero if the comment names none.
func parseComment(text string) (mark string, given credential.Given) {
	parts := regexp.MustCompile(`^(.*) generation=(\d{1,10}) created=(\S+)$`).FindStringSubmatch(text)
	if parts == nil {
		return text, credential.Given{}
	}
	generation, err := strconv.Atoi(parts[2])
	if err != nil {
		return text, credential.Given{}
	}
	created, err := time.Parse(time.RFC3339, parts[3])
	if err != nil {
		return text, credential.Given{}
	}
	return parts[1], credential.Given{Generation: generation, Created: created.UTC()}
}

// keep returns the statement that records with a login which credential it was given.
func keep(owner credential.Owner, record credential.Record) string {
	return "COMMENT ON ROLE " + identifier(record.Username) + " IS " + literal(commentGiven(owner, credential.GivenOf(record)))
}

// Keep records in the comment on a login which credential it was given, if the login is the owner's and its comment does not say so yet.
func (l Logins) Keep(ctx context.Context, owner credential.Owner, current credential.Record) error {
	err := settle(ctx, func(ctx context.Context) (bool, error) {
		seen, err := l.observe(ctx, current.Username)
		if err != nil {
			return false, err
		}
		if role, ok := seen[current.Username]; !ok || !role.isOf(owner) || role.given == credential.GivenOf(current) {
			return true, nil
		}
		return true, transaction(ctx, l.Tenant.Server.pool, []string{keep(owner, current)})
	})
	if err != nil {
		return fmt.Errorf("set comment on role %s: %w", current.Username, err)
	}
	return nil
}
