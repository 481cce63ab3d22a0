package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// The comment on a login is its ownership mark followed by the generation of the credential that it was last given. See
// docs/decisions/0012-systems-keep-generations.md.

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
