package elasticache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"
)

const (
	// rememberedFor is how long a requested membership change is remembered unless it is requested again.
	rememberedFor = 5 * time.Minute
	// writeTimeout limits a write, including the reads before it.
	writeTimeout = time.Minute
)

// group is the only writer of a user group. AWS accepts one change of a group at a time, which can take minutes, and rejects the whole
// change if one part of it is invalid. So requests are collected, wait while the group is being modified, and additions and removals are
// sent separately. The group is read first, so that only members are removed.
type group struct {
	cache *Cache
	id    string

	mu sync.Mutex
	// wants are the users to add or remove.
	wants map[string]want
	// next is the write that collects wants; nil for none.
	next *write
	// writing is held during a write.
	writing sync.Mutex
	// left is true if the last write was a removal, so that additions are next.
	left bool
}

type want struct {
	comes bool
	since time.Time
}

// write is one read of a group and at most one change of it.
type write struct {
	done    chan struct{}
	results map[string]error
}

func newGroup(cache *Cache, id string) *group {
	return &group{cache: cache, id: id, wants: map[string]want{}}
}

// describe reads the group.
func (g *group) describe(ctx context.Context) (types.UserGroup, error) {
	if err := g.cache.turn(ctx); err != nil {
		return types.UserGroup{}, err
	}
	found, err := g.cache.config.Client.DescribeUserGroups(ctx, &sdk.DescribeUserGroupsInput{UserGroupId: &g.id}, quiet)
	if err != nil {
		return types.UserGroup{}, told("read user group "+g.id, err)
	}
	if len(found.UserGroups) != 1 {
		return types.UserGroup{}, fmt.Errorf("read user group: got %d groups with the ID %s", len(found.UserGroups), g.id)
	}
	return found.UserGroups[0], nil
}

// attached reads the group. It returns ErrNoGroup if the group is not attached to a cache.
func (g *group) attached(ctx context.Context) (types.UserGroup, error) {
	is, err := g.describe(ctx)
	if err == nil && len(is.ReplicationGroups)+len(is.ServerlessCaches) == 0 {
		err = fmt.Errorf("user group %s is not attached to a cache: %w; attach it, or use the attached one (AWS attaches one group to a cache)", g.id, ErrNoGroup)
	}
	return is, err
}

// change adds a user to the group or removes it, together with other concurrent requests. It returns nil if nothing has to be done.
// ErrSettling means that the change is in progress or waits. The caller should call change again to get the result, but need not.
func (g *group) change(ctx context.Context, username string, comes bool) error {
	g.mu.Lock()
	g.wants[username] = want{comes, time.Now()}
	joined := g.next
	if joined == nil {
		joined = &write{done: make(chan struct{})}
		g.next = joined
		// Other callers wait for the same write, so it must not end with the context of the first.
		go g.run(context.WithoutCancel(ctx), joined)
	}
	g.mu.Unlock()
	select {
	case <-joined.done:
		return joined.results[username]
	case <-ctx.Done():
		return fmt.Errorf("wait for a change of user group %s: %w", g.id, ctx.Err())
	}
}

// forget removes the requested change of a user.
func (g *group) forget(username string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.wants, username)
}

// run collects requests for a while and writes them.
func (g *group) run(ctx context.Context, made *write) {
	defer close(made.done)
	ctx, cancel := context.WithTimeout(ctx, g.cache.config.Window+writeTimeout)
	defer cancel()
	timer := time.NewTimer(g.cache.config.Window)
	defer timer.Stop()
	<-timer.C
	g.writing.Lock()
	defer g.writing.Unlock()
	g.mu.Lock()
	g.next = nil
	maps.DeleteFunc(g.wants, func(_ string, w want) bool { return time.Since(w.since) > rememberedFor })
	taken := maps.Clone(g.wants)
	g.mu.Unlock()
	made.results = g.write(ctx, taken)
	g.mu.Lock()
	defer g.mu.Unlock()
	for username, was := range taken {
		// Keep requests that wait for a later write, and newer requests.
		if !errors.Is(made.results[username], errWaits) && g.wants[username] == was {
			delete(g.wants, username)
		}
	}
}

// errWaits means that a request waits for a later write.
var errWaits = errors.New("waiting")

func (g *group) waits(username, why string) error {
	return fmt.Errorf("%w: %w", settling("ElastiCache user %s waits for user group %s, which is %s", username, g.id, why), errWaits)
}

// write does what is possible now and returns the result for each user.
func (g *group) write(ctx context.Context, wants map[string]want) map[string]error {
	results := map[string]error{}
	is, err := g.describe(ctx)
	if err != nil {
		for username := range wants {
			results[username] = err
		}
		return results
	}
	if status := aws.ToString(is.Status); status != active {
		for username := range wants {
			results[username] = g.waits(username, status)
		}
		return results
	}
	var come, gone []string
	for _, username := range slices.Sorted(maps.Keys(wants)) {
		switch in := slices.Contains(is.UserIds, username); {
		case wants[username].comes && !in:
			come = append(come, username)
		case !wants[username].comes && in:
			gone = append(gone, username)
		}
	}
	if room := max(0, g.cache.config.GroupLimit-len(is.UserIds)); len(come) > room {
		for _, username := range come[room:] {
			results[username] = fmt.Errorf("user group %s has %d users: %w; request a higher quota, or use another cache", g.id, len(is.UserIds), ErrQuota)
		}
		come = come[:room]
	}
	g.send(ctx, come, gone, results)
	return results
}

// send sends either additions or removals; the others wait.
func (g *group) send(ctx context.Context, come, gone []string, results map[string]error) {
	now, later := change{g, true, come}, gone
	if len(gone) > 0 && (len(come) == 0 || !g.left) {
		now, later = change{g, false, gone}, come
	}
	if len(now.users) == 0 {
		return
	}
	g.left = !now.comes
	sent := now.send(ctx, results)
	for _, username := range later {
		results[username] = g.waits(username, "modifying")
		if !sent {
			results[username] = g.waits(username, "about to change")
		}
	}
}

// change is a request to add users or to remove users.
type change struct {
	group *group
	comes bool
	users []string
}

// send sends the request and reports whether AWS accepted any part of it.
func (c change) send(ctx context.Context, results map[string]error) bool {
	err := c.request(ctx)
	refused := []string{codeUserNotFound, codeDuplicate, codeValue, codeCombination, codeUserQuota, codeGroupQuota}
	if err != nil && slices.Contains(refused, codeOf(err)) {
		return c.divide(ctx, err, results)
	}
	for _, username := range c.users {
		results[username] = c.told(username, err)
	}
	return err == nil
}

// divide handles a rejected request. AWS rejects a request as a whole and does not say which part is invalid. divide first leaves out users
// whose change has already happened, as after a request that the SDK sent twice. Then it sends halves until one is accepted; the other one
// waits.
func (c change) divide(ctx context.Context, refusal error, results map[string]error) bool {
	is, err := c.group.describe(ctx)
	done := func(username string) bool { return err == nil && slices.Contains(is.UserIds, username) == c.comes }
	left := change{c.group, c.comes, slices.DeleteFunc(slices.Clone(c.users), done)}
	switch {
	case len(left.users) == 0:
		return false
	case len(left.users) < len(c.users):
		return left.send(ctx, results)
	case len(c.users) == 1:
		results[c.users[0]] = c.told(c.users[0], refusal)
		return false
	}
	half := len(c.users) / 2
	one, other := change{c.group, c.comes, c.users[:half]}, change{c.group, c.comes, c.users[half:]}
	if !one.send(ctx, results) {
		return other.send(ctx, results)
	}
	for _, username := range other.users {
		results[username] = c.group.waits(username, "modifying")
	}
	return true
}

// told returns the result for a user.
func (c change) told(username string, err error) error {
	switch {
	case err == nil:
		return settling("the membership of ElastiCache user %s in user group %s is changing", username, c.group.id)
	case codeOf(err) == codeGroupState:
		return c.group.waits(username, "modifying")
	}
	return told("change the membership of ElastiCache user "+username+" in user group "+c.group.id, err)
}

func (c change) request(ctx context.Context) error {
	if err := c.group.cache.turn(ctx); err != nil {
		return err
	}
	request := &sdk.ModifyUserGroupInput{UserGroupId: &c.group.id, UserIdsToRemove: c.users}
	if c.comes {
		request.UserIdsToAdd, request.UserIdsToRemove = c.users, nil
	}
	_, err := c.group.cache.config.Client.ModifyUserGroup(ctx, request, quiet)
	return err //nolint:wrapcheck // The caller wraps it.
}
