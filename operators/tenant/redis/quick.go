package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
)

// Expected is the expected state of a user on all nodes.
type Expected struct {
	users    Users
	owner    credential.Owner
	given    credential.Given
	password string // its hash
}

// Expect returns the state of a user after ConvergeAccess and credential.User, if the given credential is the only one in use. It stores
// the hash of the password.
func (u Users) Expect(owner credential.Owner, record credential.Record) Expected {
	return Expected{u, owner, credential.GivenOf(record), hash(record.Password)}
}

// Difference returns what differs from the expected state, or "". Everything that ConvergeAccess or credential.User would change is a
// difference, and so is a node that may not have saved its users. It writes nothing and sends one request to each node for all users.
func (n *Nodes) Difference(ctx context.Context, all []Expected) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	difference := ""
	err := n.each(func(one *node) error {
		if difference != "" {
			return nil
		}
		if one.saves.now() == "" {
			difference = fmt.Sprintf("the ACL file of redis node %s may not have all changes", one.address)
			return nil
		}
		found, err := one.accounts(ctx, all)
		if err != nil {
			return err
		}
		for i, expected := range all {
			same, err := expected.same(ctx, one, found[i])
			if err != nil {
				return err
			}
			if !same {
				difference = fmt.Sprintf("user %s on redis node %s", expected.given.Username, one.address)
				return nil
			}
		}
		return nil
	})
	return difference, err
}

// same reports whether a node has the user in the expected state.
func (e Expected) same(ctx context.Context, n *node, is *account) (bool, error) {
	switch {
	case is == nil, is.whose(e.owner) != credential.Present, is.off, is.nopass:
		return false, nil
	case len(is.passwords) != 1, is.passwords[0] != e.password, is.keys.Given(e.owner, e.given.Username) != e.given:
		return false, nil
	}
	return n.grants(ctx, is, e.users.Access, e.owner)
}

// accounts reads several users at once. An entry is nil if the node does not have the user.
func (n *node) accounts(ctx context.Context, all []Expected) ([]*account, error) {
	const doing = "read users of a tenant"
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	var answers []*goredis.Cmd
	_, err := n.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, expected := range all {
			answers = append(answers, pipe.Do(ctx, "ACL", "GETUSER", expected.given.Username))
		}
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, n.fault(doing, err)
	}
	found := make([]*account, len(all))
	for i, answer := range answers {
		fields, err := answer.Slice()
		if errors.Is(err, goredis.Nil) {
			continue
		}
		if err != nil {
			return nil, n.fault(doing, err)
		}
		if found[i], err = parseAccount(fields); err != nil {
			return nil, fmt.Errorf("redis node %s: %s: %w", n.address, doing, err)
		}
	}
	return found, nil
}
