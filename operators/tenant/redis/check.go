package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// probe is a username that no app can have. Tries of rights name it.
const probe = "einmal:nobody"

// defaultUser is the user that a client is which does not log in.
const defaultUser = "default"

// Check tries on every node the rights that the administrator needs, and looks whether the user default needs a password. It changes no
// user. Its errors are ErrDenied, with the rights that are missing, and ErrOpen, beside those of any look.
func (n *Nodes) Check(ctx context.Context) error {
	return n.each(func(one *node) error {
		if err := one.tryRights(ctx); err != nil {
			return err
		}
		is, err := one.account(ctx, defaultUser)
		if err == nil && is != nil && !is.off && is.nopass {
			err = fmt.Errorf("redis node %s: %w; run ACL SETUSER default off, or give it a password, and save that", one.address, ErrOpen)
		}
		return err
	})
}

// WithoutFile returns the addresses of the nodes that have no aclfile: they forget their users when they restart. A node that is not known
// to have one gets a request to save its users, which changes none of them.
func (n *Nodes) WithoutFile(ctx context.Context) ([]string, error) {
	var without []string
	err := n.each(func(one *node) error {
		one.mu.Lock()
		known := one.saves
		one.mu.Unlock()
		if known {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, one.config.Timeout)
		defer cancel()
		err := one.client.Do(ctx, "ACL", "SAVE").Err()
		if withoutFile(err) {
			without = append(without, one.address)
			return nil
		}
		one.noteSaves(err == nil)
		return one.fault("save its users", err)
	})
	return without, err
}

func (n *node) noteSaves(saves bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.saves = saves
}

// tries are the commands that the administrator needs, in an order that leaves no user behind, each behind the right to it. The last one
// needs none: a command that a server does not know aborts the transaction.
func tries() [][]any {
	return [][]any{
		{"acl|getuser", "ACL", "GETUSER", probe},
		{"acl|setuser", "ACL", "SETUSER", probe, "off"},
		{"acl|deluser", "ACL", "DELUSER", probe},
		{"acl|users", "ACL", "USERS"},
		{"acl|save", "ACL", "SAVE"},
		{"acl|cat", "ACL", "CAT"},
		{"client|kill", "CLIENT", "KILL", "USER", probe},
		{"", "EINMAL.ABORT"},
	}
}

// tryRights queues each command in a transaction that is aborted: a server refuses what the user may not run when it is queued. So the server
// itself decides, and nothing is run.
func (n *node) tryRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	options := n.options(n.config.Username, n.config.Password)
	options.OnConnect = checkVersion
	client := goredis.NewClient(options) // Its connection is closed at the end, whatever state it is in.
	defer func() { _ = client.Close() }()
	session := client.Conn()
	defer func() { _ = session.Close() }()
	var missing []string
	try := func(right any, command ...any) error {
		err := session.Do(ctx, command...).Err()
		switch {
		case err != nil && strings.Contains(err.Error(), "NOPERM"):
			missing = append(missing, fmt.Sprintf("+%s", right))
		case err != nil && right != "" && !goredis.HasErrorPrefix(err, "EXECABORT"):
			return n.fault(fmt.Sprintf("try the right +%s", right), err)
		}
		return nil
	}
	if err := try("multi", "MULTI"); err != nil || len(missing) > 0 {
		return errors.Join(err, n.lacks(missing)) // Outside of a transaction the commands would be run.
	}
	for _, command := range append(tries(), []any{"exec", "EXEC"}, []any{"multi", "MULTI"}, []any{"discard", "DISCARD"}) {
		if err := try(command[0], command[1:]...); err != nil {
			return err
		}
	}
	return n.lacks(missing)
}

// lacks is ErrDenied where rights are missing.
func (n *node) lacks(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	rights := strings.Join(missing, " ")
	return fmt.Errorf("redis node %s: %w: the user %s lacks %s; run ACL SETUSER %[3]s %[4]s, and save that", n.address, ErrDenied, n.config.Username, rights)
}
