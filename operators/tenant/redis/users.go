package redis

import (
	"context"
	"fmt"
	"slices"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// maxPasswords is how many passwords a user has at most: the one before a rotation, and the one after it.
const maxPasswords = 2

// Users are the users of a Redis that have an access, each on all nodes. What one node cannot do now is done on the others, and is an
// error; doing it again does what is missing.
type Users struct {
	Nodes  *Nodes
	Access Access
	// Terminate makes Retire end all connections of the user too. Redis does not know which password a connection came with; so all
	// are ended, and clients that have the current one connect again.
	Terminate bool
}

var _ credential.Rotator = Users{}

// Observe compares the hashes that the nodes have, and writes nothing. It does not log in: see Prove.
func (u Users) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	found, err := u.accounts(ctx, username)
	if err != nil {
		return "", err
	}
	states := make([]credential.State, 0, len(found))
	for _, is := range found {
		states = append(states, is.state(owner, password))
	}
	return fold(states), nil
}

// accounts asks every node for a user. One node that does not tell is an error: it could have what changes the decision.
func (u Users) accounts(ctx context.Context, username string) (map[*node]*account, error) {
	found := map[*node]*account{}
	err := u.Nodes.each(func(n *node) (err error) {
		found[n], err = n.account(ctx, username)
		return err
	})
	return found, err
}

// Prove logs in on every node: Accepted, or Refused where one says that the password is wrong, or that there is no such user. The user
// is on the nodes with the rights to use its keys; so this writes nothing but a line in logs of logins.
func (u Users) Prove(ctx context.Context, username string, password credential.Password) (credential.State, error) {
	var states []credential.State
	err := u.Nodes.each(func(n *node) error {
		state, err := n.login(ctx, username, password)
		states = append(states, state)
		return err
	})
	if err != nil {
		return "", err
	}
	return fold(states), nil
}

// Create makes the user on the nodes that lack it, with all passwords that it has on the others; so that one which has forgotten it during
// a rotation knows both again. It is an error if it is there with other passwords.
func (u Users) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	if err := u.Access.Check(); err != nil {
		return err
	}
	found, err := u.claim(ctx, owner, record.Username)
	if err != nil {
		return err
	}
	passwords, given := []string{hash(record.Password)}, []string{givenPattern(owner, record)}
	for n, is := range found {
		switch {
		case is == nil:
		case !is.accepts(record.Password):
			return fmt.Errorf("redis node %s has the user %s already, with another password", n.address, record.Username)
		case len(is.passwords) > len(passwords):
			passwords, given = is.passwords, is.kept()
		}
	}
	return u.Nodes.each(func(n *node) error {
		if found[n] != nil {
			return nil
		}
		return u.give(ctx, n, nil, grant{owner, record.Username, passwords, given})
	})
}

// Set gives the user the password, the mark, the access and the right to log in, on the nodes that lack any of it, and makes it where
// it is missing. With Keep the passwords that a node accepts stay; where that would be more than two, only the Previous does; and it
// is ErrFull, before anything is changed, if that is not known.
func (u Users) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	if err := u.Access.Check(); err != nil {
		return err
	}
	found, err := u.claim(ctx, owner, change.Username, credential.Unmarked)
	if err != nil {
		return err
	}
	wanted := map[*node][]string{}
	for n, is := range found {
		if wanted[n], err = passwords(is, change); err != nil {
			return fmt.Errorf("redis node %s, user %s: %w; take one out of use first (ACL SETUSER %s !…)", n.address, change.Username, err, change.Username)
		}
	}
	return u.Nodes.each(func(n *node) error {
		return u.give(ctx, n, found[n], grant{owner, change.Username, wanted[n], []string{givenPattern(owner, change.Record)}})
	})
}

// passwords are the hashes that a user is to have on a node.
func passwords(is *account, change credential.Assignment) ([]string, error) {
	current := hash(change.Password)
	if !change.Keep {
		return []string{current}, nil
	}
	var previous, kept []string
	if !change.Previous.Password.IsZero() && change.Previous.Username == change.Username {
		previous = []string{hash(change.Previous.Password)}
	}
	if is != nil && !is.nopass {
		kept = is.passwords
	}
	switch {
	case slices.Contains(kept, current):
		return kept, nil
	case len(kept) == 0:
		return append(previous, current), nil
	case len(kept) < maxPasswords:
		return append(slices.Clone(kept), current), nil
	case len(previous) > 0:
		return append(previous, current), nil
	default:
		return nil, ErrFull
	}
}

// claim asks every node for a user, of which all that there are must be the owner's, or in a state that is allowed too.
func (u Users) claim(ctx context.Context, owner credential.Owner, username string, allowed ...credential.State) (map[*node]*account, error) {
	found, err := u.accounts(ctx, username)
	if err != nil {
		return nil, err
	}
	for n, is := range found {
		whose := is.whose(owner)
		if whose != credential.Present && whose != credential.Absent && !slices.Contains(allowed, whose) {
			return nil, fmt.Errorf("redis node %s has the user %s, and it is %s: %w", n.address, username, whose, credential.ErrConflict)
		}
	}
	return found, nil
}

// grant is what a user is to be.
type grant struct {
	owner     credential.Owner
	username  string
	passwords []string
	// given are the patterns that say which credential it has.
	given []string
}

// give makes a user of a node be as it should, in one command, and writes nothing if it is.
func (u Users) give(ctx context.Context, n *node, is *account, to grant) error {
	secret := is != nil && !is.nopass && sameWords(is.passwords, to.passwords)
	if secret && !is.off && sameWords(is.kept(), to.given) {
		granted, err := n.grants(ctx, is, u.Access, to.owner)
		if err != nil || granted {
			return err
		}
	}
	rules := []string{"on"}
	if !secret {
		rules = append(rules, "resetpass")
		for _, password := range to.passwords {
			rules = append(rules, "#"+password)
		}
	}
	return n.change(ctx, "set the user "+to.username, setUser(to.username, append(rules, u.Access.rules(to.owner, is, to.given)...)))
}

// setUser is a command. The server does all of its rules or none.
func setUser(username string, rules []string) []any {
	command := []any{"ACL", "SETUSER", username}
	for _, rule := range rules {
		command = append(command, rule)
	}
	return command
}

// ConvergeAccess makes the user have the access on all nodes, and leaves its passwords alone. A node that lacks the user gets it with
// the passwords that it has on another, so that one which has forgotten its users is right again before a password is tried the next
// time; where no node has the user there is nothing to do. It tells whether it had to write: where all is as it should be it does not.
// It is ErrUnproven if a node does not show the access that it was given.
func (u Users) ConvergeAccess(ctx context.Context, owner credential.Owner, username string) (bool, error) {
	if err := u.Access.Check(); err != nil {
		return false, err
	}
	found, err := u.claim(ctx, owner, username)
	if err != nil {
		return false, err
	}
	changed, elsewhere := false, u.lettingIn(found)
	err = u.Nodes.each(func(n *node) error {
		is := found[n]
		if is == nil && elsewhere == nil {
			return nil
		}
		if is == nil {
			changed = true
			return u.give(ctx, n, nil, grant{owner, username, elsewhere.passwords, elsewhere.kept()})
		}
		granted, err := n.grants(ctx, is, u.Access, owner)
		if err != nil || granted {
			return err
		}
		changed = true
		if err := n.change(ctx, "set the access of the user "+username, setUser(username, u.Access.rules(owner, is, is.kept()))); err != nil {
			return err
		}
		return u.shown(ctx, n, owner, username)
	})
	return changed, err
}

// lettingIn is the user on the first node that lets it in; nil if there is none.
func (u Users) lettingIn(found map[*node]*account) *account {
	for _, n := range u.Nodes.nodes {
		if is := found[n]; is != nil && !is.off && !is.nopass && len(is.passwords) > 0 {
			return is
		}
	}
	return nil
}

// shown tells whether a node shows the access that it was given, as it would be given again for ever if not.
func (u Users) shown(ctx context.Context, n *node, owner credential.Owner, username string) error {
	is, err := n.account(ctx, username)
	if err != nil || is == nil {
		return err
	}
	granted, err := n.grants(ctx, is, u.Access, owner)
	if err == nil && !granted {
		err = fmt.Errorf("redis node %s shows another access of the user %s than it was given: %w", n.address, username, credential.ErrUnproven)
	}
	return err
}

// Superseded returns whether any node accepts another password than the current one, or none at all, and the credential that the nodes keep. Others
// there are none: a user has two passwords here.
func (u Users) Superseded(ctx context.Context, owner credential.Owner, current credential.Record, _ []string) (credential.Beside, error) {
	found, err := u.claim(ctx, owner, current.Username)
	if err != nil {
		return credential.Beside{}, err
	}
	var beside credential.Beside
	first := true
	for _, is := range found {
		if is == nil {
			continue
		}
		given := is.given(owner, current.Username)
		if !is.off && given.After(beside.Latest) {
			beside.Latest = given
		}
		if first || beside.Current.After(given) { // All nodes keep it, or it is not kept.
			beside.Current, first = given, false
		}
		beside.Accepted = beside.Accepted || !is.off && !is.alone(current.Password)
	}
	return beside, nil
}

// Keep keeps with the user, on each node that has it, which credential it was given. It leaves its access and its passwords alone.
func (u Users) Keep(ctx context.Context, owner credential.Owner, current credential.Record) error {
	found, err := u.claim(ctx, owner, current.Username)
	if err != nil {
		return err
	}
	wanted := []string{givenPattern(owner, current)}
	return u.Nodes.each(func(n *node) error {
		is := found[n]
		if is == nil || sameWords(is.kept(), wanted) {
			return nil
		}
		keys := slices.DeleteFunc(slices.Clone(is.keys), names.IsCacheGiven)
		rules := slices.Concat([]string{"resetkeys"}, keys, wanted)
		return n.change(ctx, "keep the generation of the user "+current.Username, setUser(current.Username, rules))
	})
}

// alone tells whether a user is let in with a password and with nothing else.
func (a *account) alone(password credential.Password) bool {
	return !a.nopass && slices.Equal(a.passwords, []string{hash(password)})
}

// Retire leaves the user the current password alone, on every node, and with Terminate ends its connections there. A node that does
// not accept the current one is left as it is, with an error: it would let nobody in.
func (u Users) Retire(ctx context.Context, owner credential.Owner, current credential.Record, _ []string) error {
	found, err := u.claim(ctx, owner, current.Username)
	if err != nil {
		return err
	}
	return u.Nodes.each(func(n *node) error {
		is := found[n]
		switch {
		case is == nil, is.alone(current.Password):
			return nil
		case !slices.Contains(is.passwords, hash(current.Password)):
			return fmt.Errorf("redis node %s does not accept the current password of the user %s: %w", n.address, current.Username, credential.ErrUnproven)
		}
		commands := [][]any{setUser(current.Username, []string{"resetpass", "#" + hash(current.Password)})}
		if u.Terminate {
			commands = append(commands, []any{"CLIENT", "KILL", "USER", current.Username})
		}
		return n.change(ctx, "retire passwords of the user "+current.Username, commands...)
	})
}

// Delete removes the user from all nodes, and ends its connections. What is not there is removed; if any node has it for another
// owner, or without a mark, it is ErrConflict, and stays everywhere.
func (u Users) Delete(ctx context.Context, owner credential.Owner, username string) error {
	found, err := u.claim(ctx, owner, username)
	if err != nil {
		return err
	}
	return u.Nodes.each(func(n *node) error {
		if found[n] == nil {
			return nil
		}
		return n.change(ctx, "delete the user "+username, []any{"ACL", "DELUSER", username})
	})
}
