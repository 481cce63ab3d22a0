package redis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/credential"
)

// account is the state of a user on a node.
type account struct {
	off, nopass bool
	passwords   []string // hashes
	keys        Patterns
	channels    []string // patterns, including the leading &
	commands    string
	selectors   int // the number of further selectors, each with rights of its own
	// behind is true if another node was given a later credential: this one was down then, or has gone back to an old ACL file.
	behind bool
}

// parseAccount parses the answer to ACL GETUSER.
func parseAccount(answer []any) (*account, error) {
	fields := named(answer)
	for _, needed := range []string{"flags", "passwords", "commands", "keys", "channels"} {
		if _, there := fields[needed]; !there {
			return nil, fmt.Errorf("the answer has no field %s: %w; Redis 7.0 or Valkey 7.2, or later, is required", needed, ErrFailed)
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

// named converts an answer of alternating names and values to a map.
func named(answer []any) map[string]any {
	fields := map[string]any{}
	for i := 0; i+1 < len(answer); i += 2 {
		name, _ := answer[i].(string)
		fields[name] = answer[i+1]
	}
	return fields
}

// words returns the words of a text, or of a list of words.
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

// hash returns a password the way a server stores it.
func hash(password credential.Password) string {
	digest := sha256.Sum256([]byte(password.Reveal()))
	return hex.EncodeToString(digest[:])
}

// whose returns the ownership of a user: Present for the owner, or Absent, Foreign or Unmarked.
func (a *account) whose(owner credential.Owner) credential.State {
	if a == nil {
		return credential.Absent
	}
	return a.keys.Whose(owner)
}

// state returns the state of a user on one node. A user that is behind counts as one that the node lacks, because no person has changed its
// password.
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
	case a.behind:
		return credential.Absent
	default:
		return credential.Refused
	}
}

// accepts reports whether a password is one of the user's. It is false for a user that needs no password, so that this is corrected.
func (a *account) accepts(password credential.Password) bool {
	return !a.nopass && slices.Contains(a.passwords, hash(password))
}

// fold combines the states on all nodes. A mark of another owner on any node makes the user Foreign. A user that is missing on some nodes
// is Absent only if all others accept its password, so that Create adds it where it is missing; without a password to compare it is
// Present.
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
