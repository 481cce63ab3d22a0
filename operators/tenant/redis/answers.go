package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/einmal-operators/einmal/credential"
)

// answers is what the nodes say of one user. A node that does not answer holds up nothing on the others.
type answers struct {
	// nodes are those that answered, and accounts what they have. The account is nil if the node does not have the user.
	nodes    []*node
	accounts map[*node]*account
	// missing are the errors of the other nodes.
	missing []error
}

// ask reads a user from every node. It returns an error only if no node answers.
func (u Users) ask(ctx context.Context, owner credential.Owner, username string) (answers, error) {
	said := answers{accounts: map[*node]*account{}}
	for _, n := range u.Nodes.nodes {
		is, err := n.account(ctx, username)
		if err != nil {
			said.missing = append(said.missing, err)
			continue
		}
		said.nodes, said.accounts[n] = append(said.nodes, n), is
	}
	if len(said.nodes) == 0 {
		return said, errors.Join(said.missing...)
	}
	said.compare(owner, username)
	return said, nil
}

// compare finds the accounts that are behind another one.
func (a answers) compare(owner credential.Owner, username string) {
	var latest credential.Given
	for _, is := range a.accounts {
		if is != nil && !is.off && is.keys.Given(owner, username).After(latest) {
			latest = is.keys.Given(owner, username)
		}
	}
	for _, is := range a.accounts {
		if is != nil {
			is.behind = latest.After(is.keys.Given(owner, username))
		}
	}
}

// claim is ask. It returns credential.ErrConflict unless each existing user belongs to the owner or is in an allowed state.
func (u Users) claim(ctx context.Context, owner credential.Owner, username string, allowed ...credential.State) (answers, error) {
	said, err := u.ask(ctx, owner, username)
	if err != nil {
		return said, err
	}
	for _, n := range said.nodes {
		whose := said.accounts[n].whose(owner)
		if whose != credential.Present && whose != credential.Absent && !slices.Contains(allowed, whose) {
			return said, fmt.Errorf("redis node %s: user %s is %s: %w", n.address, username, whose, credential.ErrConflict)
		}
	}
	return said, nil
}

// each calls a function for every node that answered, even if it fails for some. If it succeeds for at least one node, and not for all nodes
// of the Redis, the error is a credential.ErrPartial.
func (a answers) each(do func(n *node, is *account) error) error {
	failed, done := slices.Clone(a.missing), false
	for _, n := range a.nodes {
		err := do(n, a.accounts[n])
		failed, done = append(failed, err), done || err == nil
	}
	err := errors.Join(failed...)
	if err != nil && done {
		return fmt.Errorf("%w: %w", credential.ErrPartial, err)
	}
	return err
}

// partial returns a credential.ErrPartial if a node did not answer.
func (a answers) partial() error {
	return a.each(func(*node, *account) error { return nil })
}

// best returns the account that a node without the user gets: one that can log in with a password and is behind no other. It is nil if there
// is none.
func (a answers) best() *account {
	for _, n := range a.nodes {
		if is := a.accounts[n]; is != nil && !is.off && !is.nopass && !is.behind && len(is.passwords) > 0 {
			return is
		}
	}
	return nil
}
