package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// probe is a username that no app can have. Tests of rights use it.
const probe = "einmal:nobody"

// defaultUser is the user of a client that does not log in.
const defaultUser = "default"

// Check tests on every node the rights that the administrator needs, and whether the user default needs a password. It changes no user.
// Beside the errors of any read it returns ErrDenied with the missing rights, and ErrOpen.
func (n *Nodes) Check(ctx context.Context) error {
	return n.each(func(one *node) error {
		if err := one.tryRights(ctx); err != nil {
			return err
		}
		is, err := one.account(ctx, defaultUser)
		if err == nil && is != nil && !is.off && is.nopass {
			err = fmt.Errorf("redis node %s: %w; run ACL SETUSER default off or set a password, then ACL SAVE", one.address, ErrOpen)
		}
		return err
	})
}

// tries returns the commands that the administrator needs, each after the right for it, in an order that leaves no user behind. The last
// command does not exist, so that the server aborts the transaction.
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

// tryRights queues each command in a transaction that is aborted: a server rejects a command without the right when it is queued. So the
// server itself decides, and no command is executed.
func (n *node) tryRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	client := goredis.NewClient(n.options()) // A separate client, because the connection can be left inside a transaction.
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
			return n.fault(fmt.Sprintf("test the right +%s", right), err)
		}
		return nil
	}
	if err := try("multi", "MULTI"); err != nil || len(missing) > 0 {
		return errors.Join(err, n.lacks(missing)) // Outside of a transaction the commands would be executed.
	}
	for _, command := range append(tries(), []any{"exec", "EXEC"}, []any{"multi", "MULTI"}, []any{"discard", "DISCARD"}) {
		if err := try(command[0], command[1:]...); err != nil {
			return err
		}
	}
	return n.lacks(missing)
}

// lacks returns ErrDenied if rights are missing.
func (n *node) lacks(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	rights := strings.Join(missing, " ")
	return fmt.Errorf("redis node %s: %w: user %s lacks %s; run ACL SETUSER %[3]s %[4]s, then ACL SAVE", n.address, ErrDenied, n.config.Username, rights)
}
