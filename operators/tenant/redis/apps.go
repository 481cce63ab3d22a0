package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// Apps returns the sorted names of the apps of a tenant that have users with their owner's mark on any node. So it also finds an app that
// the Tenant no longer lists. If a node does not list its users, Apps returns an error beside the apps on the others.
func (n *Nodes) Apps(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error) {
	found := map[string]bool{}
	err := n.each(func(one *node) error {
		usernames, err := one.usernames(ctx)
		if err != nil {
			return err
		}
		for _, username := range usernames {
			app, is := of.AppOfRedisUser(username)
			if !is || found[app.Name] {
				continue
			}
			user, err := one.account(ctx, username)
			if err != nil {
				return err
			}
			found[app.Name] = user.whose(owner(app)) == credential.Present
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("find users of tenant %s: %w", of.Name, err)
	}
	maps.DeleteFunc(found, func(_ string, ours bool) bool { return !ours })
	return slices.Sorted(maps.Keys(found)), err
}

// usernames returns the names of all users of a node.
func (n *node) usernames(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	found, err := n.client.Do(ctx, "ACL", "USERS").StringSlice()
	if err != nil {
		return nil, n.fault("list users", err)
	}
	return found, nil
}
