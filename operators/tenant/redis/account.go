package redis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// account is a user as a node describes it.
type account struct {
	off, nopass    bool
	passwords      []string // hashes
	keys, channels []string // patterns, with their sign in front
	commands       string
	selectors      int // rights beside those
}

// parseAccount reads the answer to ACL GETUSER.
func parseAccount(answer []any) (*account, error) {
	fields := named(answer)
	for _, needed := range []string{"flags", "passwords", "commands", "keys", "channels"} {
		if _, there := fields[needed]; !there {
			return nil, fmt.Errorf("its answer has no %s: %w; it needs to be Redis 7.0 or Valkey 7.2, or later", needed, ErrFailed)
		}
	}
	flags := words(fields["flags"])
	commands, _ := fields["commands"].(string)
	selectors, _ := fields["selectors"].([]any)
	return &account{
		off: !slices.Contains(flags, "on"), nopass: slices.Contains(flags, "nopass"),
		passwords: words(fields["passwords"]), keys: words(fields["keys"]), channels: words(fields["channels"]),
		commands: commands, selectors: len(selectors),
	}, nil
}

// named are the values of an answer that is a list of names, and a value behind each.
func named(answer []any) map[string]any {
	fields := map[string]any{}
	for i := 0; i+1 < len(answer); i += 2 {
		name, _ := answer[i].(string)
		fields[name] = answer[i+1]
	}
	return fields
}

// words are the words of a text, or of a list of words.
func words(value any) []string {
	text, is := value.(string)
	if is {
		return strings.Fields(text)
	}
	var found []string
	list, _ := value.([]any)
	for _, element := range list {
		word, _ := element.(string)
		found = append(found, word)
	}
	return found
}

// hash is a password as a server keeps it.
func hash(password credential.Password) string {
	digest := sha256.Sum256([]byte(password.Reveal()))
	return hex.EncodeToString(digest[:])
}

// markOf is the mark of an owner, among the patterns of keys.
func markOf(owner credential.Owner) string { return names.CacheMark(owner.String()) }

// isMark tells a mark from patterns of keys that are in use.
func isMark(pattern string) bool {
	sign, _, _ := strings.Cut(names.CacheMark(""), ":")
	return strings.HasPrefix(pattern, sign+":")
}

// given is the credential that a user was given last, as its patterns of keys say; zero if they do not.
func (a *account) given(owner credential.Owner, username string) credential.Given {
	if a == nil || a.whose(owner) != credential.Present {
		return credential.Given{}
	}
	for _, pattern := range a.keys {
		if generation, created, ok := names.ParseCacheGiven(owner.String(), pattern); ok {
			return credential.Given{Username: username, Generation: generation, Created: created}
		}
	}
	return credential.Given{}
}

// kept are the patterns of a user that say which credential it was given.
func (a *account) kept() []string {
	if a == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(a.keys), func(pattern string) bool { return !names.IsCacheGiven(pattern) })
}

// givenPattern is the pattern for a record.
func givenPattern(owner credential.Owner, record credential.Record) string {
	given := credential.GivenOf(record)
	return names.CacheGiven(owner.String(), given.Generation, given.Created)
}

// whose tells whether a user is there for an owner: Present, or Absent, Foreign or Unmarked.
func (a *account) whose(owner credential.Owner) credential.State {
	if a == nil {
		return credential.Absent
	}
	state := credential.Unmarked
	for _, pattern := range a.keys {
		switch {
		case pattern == markOf(owner):
			if state == credential.Unmarked {
				state = credential.Present
			}
		case isMark(pattern):
			state = credential.Foreign
		}
	}
	return state
}

// state tells what there is of a user on one node.
func (a *account) state(owner credential.Owner, password credential.Password) credential.State {
	whose := a.whose(owner)
	switch {
	case whose != credential.Present:
		return whose
	case a.off:
		return credential.Retired
	case password.IsZero():
		return credential.Present
	case a.accepts(password):
		return credential.Accepted
	default:
		return credential.Refused
	}
}

// accepts tells whether a password is one of the user's. One who needs none at all is not as it should be.
func (a *account) accepts(password credential.Password) bool {
	return !a.nopass && slices.Contains(a.passwords, hash(password))
}

// fold makes one state of those on all nodes. Another's mark anywhere is enough to keep off. A user that some nodes lack is Absent
// only where all others accept its password, so that Create puts it where it is missing; if there is no password to try, it is there.
func fold(states []credential.State) credential.State {
	for _, first := range []credential.State{credential.Foreign, credential.Unmarked, credential.Retired, credential.Refused, credential.Present} {
		if slices.Contains(states, first) {
			return first
		}
	}
	if slices.Contains(states, credential.Absent) {
		return credential.Absent
	}
	return credential.Accepted
}
