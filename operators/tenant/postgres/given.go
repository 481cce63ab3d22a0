package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// loginComment is the comment on a login: its ownership mark, the credential that it was last given, and the sessions that were told to end before that and had
// not ended. See docs/decisions/0012-systems-keep-generations.md.
type loginComment struct {
	mark  string
	given credential.Given
	// lingering are the process IDs of the sessions.
	lingering []int
}

// String returns the text of the comment.
func (c loginComment) String() string {
	text := fmt.Sprintf("%s generation=%d created=%s", c.mark, c.given.Generation, c.given.Created.UTC().Format(time.RFC3339))
	if len(c.lingering) > 0 {
		text += " sessions=" + listOf(c.lingering)
	}
	return text
}

// parseComment reads a comment. If it names no credential, all of it is the mark.
func parseComment(text string) loginComment {
	parts := regexp.MustCompile(`^(.*) generation=(\d{1,10}) created=(\S+)(?: sessions=([\d,]+))?$`).FindStringSubmatch(text)
	if parts == nil {
		return loginComment{mark: text}
	}
	generation, err := strconv.Atoi(parts[2])
	if err != nil {
		return loginComment{mark: text}
	}
	created, err := time.Parse(time.RFC3339, parts[3])
	if err != nil {
		return loginComment{mark: text}
	}
	read := loginComment{mark: parts[1], given: credential.Given{Generation: generation, Created: created.UTC()}}
	for pid := range strings.SplitSeq(parts[4], ",") {
		if number, err := strconv.Atoi(pid); err == nil {
			read.lingering = append(read.lingering, number)
		}
	}
	return read
}

// keep returns the statement that records with a login which credential it was given, and which of its sessions have not ended.
func keep(owner credential.Owner, record credential.Record, lingering ...int) string {
	return loginComment{owner.String(), credential.GivenOf(record), lingering}.on(record.Username)
}

// on returns the statement that gives a login the comment.
func (c loginComment) on(username string) string {
	return "COMMENT ON ROLE " + identifier(username) + " IS " + literal(c.String())
}
