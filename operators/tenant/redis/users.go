package redis

import (
	"context"
	"fmt"
	"slices"

	"github.com/einmal-operators/einmal/credential"
)

// maxPasswords is the maximum number of passwords of a user: the previous and the current one of a rotation.
const maxPasswords = 2

// Users are users with one access, each on all nodes. If a node does not answer or fails, an operation is still done on the others, and returns
// credential.ErrPartial with the error of the node. Repeating it does what is missing.
type Users struct {
	Nodes  *Nodes
	Access Access
	// Terminate also ends all connections of the user on a node that stops accepting one of its passwords, in Set, ConvergeAccess and Retire.
	// Redis does not know which password a connection used, so all connections end, and clients with the current password connect again. The
	// default is false: connections continue.
	Terminate bool
}

var _ credential.Rotator = Users{}

// Observe compares the password hashes on the nodes and writes nothing. It does not log in.
func (u Users) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	said, err := u.ask(ctx, owner, username)
	if err != nil {
		return "", err
	}
	states := make([]credential.State, 0, len(said.nodes))
	for _, is := range said.accounts {
		states = append(states, is.state(owner, password))
	}
	return fold(states), said.partial()
}

// Create creates the user on the nodes that lack it or are behind, with all passwords that it has on the others, so that a node that lost the
// user during a rotation accepts both again. It returns an error if the user exists with other passwords.
func (u Users) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	if err := u.Access.Check(); err != nil {
		return err
	}
	said, err := u.claim(ctx, owner, record.Username)
	if err != nil {
		return err
	}
	to := grant{owner, record.Username, []string{hash(record.Password)}, []string{GivenPattern(owner, record)}}
	for _, n := range said.nodes {
		is := said.accounts[n]
		switch {
		case is == nil, is.behind:
		case !is.accepts(record.Password):
			return fmt.Errorf("redis node %s: create user %s: it exists with another password", n.address, record.Username)
		case len(is.passwords) > len(to.passwords):
			to.passwords, to.given = is.passwords, is.keys.Naming()
		}
	}
	return said.each(func(n *node, is *account) error {
		if is != nil && !is.behind {
			return nil
		}
		return u.give(ctx, n, is, to)
	})
}

// Set gives the user the password, the mark, the access and the right to log in on the nodes that lack any of these, and creates it where
// it is missing. With Keep, the passwords that a node accepts stay valid. If that would be more than two, only the Previous stays. If the
// Previous is unknown, Set changes nothing and returns ErrFull.
func (u Users) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	if err := u.Access.Check(); err != nil {
		return err
	}
	said, err := u.claim(ctx, owner, change.Username, credential.Unmarked)
	if err != nil {
		return err
	}
	wanted := map[*node][]string{}
	for n, is := range said.accounts {
		if is != nil {
			if err := is.keys.Given(owner, change.Username).CheckSet(change.Record); err != nil {
				return fmt.Errorf("redis node %s: %w", n.address, err)
			}
		}
		if wanted[n], err = passwords(is, change); err != nil {
			return fmt.Errorf("redis node %s: set user %s: %w; remove one first (ACL SETUSER %s !…)", n.address, change.Username, err, change.Username)
		}
	}
	return said.each(func(n *node, is *account) error {
		return u.give(ctx, n, is, grant{owner, change.Username, wanted[n], []string{GivenPattern(owner, change.Record)}})
	})
}

// passwords returns the hashes that a user should have on a node.
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

// grant is the desired state of a user.
type grant struct {
	owner     credential.Owner
	username  string
	passwords []string
	// given are the patterns that name its credential.
	given []string
}

// give brings a user of a node to the desired state in one command. It writes nothing if the user is already in that state.
func (u Users) give(ctx context.Context, n *node, is *account, to grant) error {
	secret := is != nil && !is.nopass && sameWords(is.passwords, to.passwords)
	if secret && !is.off && sameWords(is.keys.Naming(), to.given) {
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
	commands := [][]any{setUser(to.username, append(rules, u.Access.rules(to.owner, is, to.given)...))}
	return n.change(ctx, "set user "+to.username, append(commands, u.endSessions(is, to.username, to.passwords)...)...)
}

// endSessions returns the command that ends the connections of a user, or none. It is needed if the user has another password than these,
// or needs none: each connection may have been made with what is rejected now. In the transaction of the change it cannot be lost.
func (u Users) endSessions(is *account, username string, passwords []string) [][]any {
	gone := func(password string) bool { return !slices.Contains(passwords, password) }
	if !u.Terminate || is == nil || !is.nopass && !slices.ContainsFunc(is.passwords, gone) {
		return nil
	}
	return [][]any{{"CLIENT", "KILL", "USER", username}}
}

// setUser returns an ACL SETUSER command. The server applies all of its rules or none.
func setUser(username string, rules []string) []any {
	command := []any{"ACL", "SETUSER", username}
	for _, rule := range rules {
		command = append(command, rule)
	}
	return command
}

// ConvergeAccess gives the user its access on all nodes. It does not change passwords, except on a node that lacks the user or is behind:
// that gets the passwords of another node, so that a node that lost its users is repaired before a password is verified. If no node has the
// user, it does nothing. It reports whether it wrote anything. It returns ErrUnproven if a node does not report the access that was set. On a
// node that may have failed to save its users, it repeats the save, and returns ErrUnsaved if that fails again.
func (u Users) ConvergeAccess(ctx context.Context, owner credential.Owner, username string) (bool, error) {
	if err := u.Access.Check(); err != nil {
		return false, err
	}
	said, err := u.claim(ctx, owner, username)
	if err != nil {
		return false, err
	}
	changed, missing := false, grant{owner: owner, username: username}
	if best := said.best(); best != nil {
		missing.passwords, missing.given = best.passwords, best.keys.Naming()
	}
	err = said.each(func(n *node, is *account) error {
		wrote, err := u.convergeOn(ctx, n, is, missing)
		changed = changed || wrote
		if err != nil {
			return err
		}
		return n.keepSaved(ctx)
	})
	return changed, err
}

// convergeOn is ConvergeAccess on one node. If the node lacks the user or is behind, it gets the missing grant, unless that has no passwords.
func (u Users) convergeOn(ctx context.Context, n *node, is *account, missing grant) (bool, error) {
	lacks := is == nil || is.behind && !is.off
	switch {
	case lacks && len(missing.passwords) > 0:
		return true, u.give(ctx, n, is, missing)
	case is == nil:
		return false, nil
	}
	granted, err := n.grants(ctx, is, u.Access, missing.owner)
	if err != nil || granted {
		return false, err
	}
	rules := u.Access.rules(missing.owner, is, is.keys.Naming())
	if err := n.change(ctx, "set access of user "+missing.username, setUser(missing.username, rules)); err != nil {
		return true, err
	}
	return true, u.shown(ctx, n, missing.owner, missing.username)
}

// shown returns an error if a node does not report the access that it was given. Otherwise the access would be written again forever.
func (u Users) shown(ctx context.Context, n *node, owner credential.Owner, username string) error {
	is, err := n.account(ctx, username)
	if err != nil || is == nil {
		return err
	}
	granted, err := n.grants(ctx, is, u.Access, owner)
	if err == nil && !granted {
		err = fmt.Errorf("redis node %s: the access of user %s differs from what was set: %w", n.address, username, credential.ErrUnproven)
	}
	return err
}

// Superseded returns whether any node accepts another password than the current one, or none at all, and the credential that the nodes
// name. There are no other users: a user can have two passwords.
func (u Users) Superseded(ctx context.Context, owner credential.Owner, current credential.Record, _ []string) (credential.Beside, error) {
	said, err := u.claim(ctx, owner, current.Username)
	if err != nil {
		return credential.Beside{}, err
	}
	var beside credential.Beside
	first := true
	for _, is := range said.accounts {
		if is == nil {
			continue
		}
		given := is.keys.Given(owner, current.Username)
		if !is.off && given.After(beside.Latest) {
			beside.Latest = given
		}
		if first || beside.Current.After(given) { // It counts only if all nodes name it.
			beside.Current, first = given, false
		}
		beside.Accepted = beside.Accepted || !is.off && !is.alone(current.Password)
	}
	return beside, said.partial()
}

// alone reports whether a user can log in with this password and with nothing else.
func (a *account) alone(password credential.Password) bool {
	return !a.nopass && slices.Equal(a.passwords, []string{hash(password)})
}

// Retire removes all passwords but the current one on every node, and with Terminate ends the user's connections there. If a node does not
// accept the current password, Retire changes nothing on that node and returns an error, because the user could not log in there any more.
func (u Users) Retire(ctx context.Context, owner credential.Owner, current credential.Record, _ []string) error {
	said, err := u.claim(ctx, owner, current.Username)
	if err != nil {
		return err
	}
	only := hash(current.Password)
	return said.each(func(n *node, is *account) error {
		switch {
		case is == nil, is.alone(current.Password):
			return nil
		case !slices.Contains(is.passwords, only):
			return fmt.Errorf("redis node %s: user %s: the current password is not accepted: %w", n.address, current.Username, credential.ErrUnproven)
		}
		commands := [][]any{setUser(current.Username, []string{"resetpass", "#" + only})}
		return n.change(ctx, "retire passwords of user "+current.Username, append(commands, u.endSessions(is, current.Username, []string{only})...)...)
	})
}

// Delete removes the user from all nodes and ends its connections. It skips nodes without the user, but returns ErrUnsaved if such a node
// cannot save its users: its file may still have the user. If a node has it for another owner or without a mark, Delete changes no node and
// returns ErrConflict.
func (u Users) Delete(ctx context.Context, owner credential.Owner, username string) error {
	said, err := u.claim(ctx, owner, username)
	if err != nil {
		return err
	}
	return said.each(func(n *node, is *account) error {
		if is == nil {
			return n.keepSaved(ctx)
		}
		return n.change(ctx, "delete user "+username, []any{"ACL", "DELUSER", username})
	})
}
