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
	// rememberedFor is for how long it is remembered that a user is to come or go, if nobody says so again.
	rememberedFor = 5 * time.Minute
	// writeTimeout is how long a write may take, with the looks before it.
	writeTimeout = time.Minute
)

// group is the one writer of a user group. AWS takes one change of a group at a time, which can last for minutes, and refuses a
// change as a whole if it does not like a part of it. So what many ask for is put together, waits while the group is modifying, comes and goes
// in different requests, and is looked for first: nobody is taken out who is not in (tenant-and-database.md §1, Terraform issues).
type group struct {
	cache *Cache
	id    string

	mu sync.Mutex
	// wants are the users that are to come or go.
	wants map[string]want
	// next is the write that collects wants; nil if nobody waits for one.
	next *write
	// writing is held by the write that is under way.
	writing sync.Mutex
	// left tells that the last write was of users that go, so that it is the turn of those that come.
	left bool
}

type want struct {
	comes bool
	since time.Time
}

// write is one look at a group, and at most one change of it.
type write struct {
	done    chan struct{}
	results map[string]error
}

func newGroup(cache *Cache, id string) *group {
	return &group{cache: cache, id: id, wants: map[string]want{}}
}

// fullError tells that a group has no room.
type fullError struct{ error }

func (e fullError) Unwrap() error { return e.error }

func isFull(err error) bool {
	_, is := errors.AsType[fullError](err)
	return is
}

// describe asks for the group.
func (g *group) describe(ctx context.Context) (types.UserGroup, error) {
	if err := g.cache.turn(ctx); err != nil {
		return types.UserGroup{}, err
	}
	found, err := g.cache.config.Client.DescribeUserGroups(ctx, &sdk.DescribeUserGroupsInput{UserGroupId: &g.id}, quiet)
	if err != nil {
		return types.UserGroup{}, told("look for the user group "+g.id, g.id, err)
	}
	if len(found.UserGroups) != 1 {
		return types.UserGroup{}, fmt.Errorf("ElastiCache tells of %d user groups with the id %s", len(found.UserGroups), g.id)
	}
	return found.UserGroups[0], nil
}

// attached asks for the group, which is an ErrNoGroup if no cache knows its users.
func (g *group) attached(ctx context.Context) (types.UserGroup, error) {
	is, err := g.describe(ctx)
	if err == nil && len(is.ReplicationGroups)+len(is.ServerlessCaches) == 0 {
		err = fmt.Errorf("the user group %s is attached to no cache: %w there; attach it, or name the one that is attached: AWS takes one for each cache", g.id, ErrNoGroup)
	}
	return is, err
}

// change makes a user come or go, with all that others ask for meanwhile. It returns nil if it is so already. An ErrSettling is on its way, or
// waits its turn: it need not be said again, but should be, to hear of it.
func (g *group) change(ctx context.Context, username string, comes bool) error {
	g.mu.Lock()
	g.wants[username] = want{comes, time.Now()}
	joined := g.next
	if joined == nil {
		joined = &write{done: make(chan struct{})}
		g.next = joined
		// What many wait for does not end with the context of the one who happened to come first.
		go g.run(context.WithoutCancel(ctx), joined)
	}
	g.mu.Unlock()
	select {
	case <-joined.done:
		return joined.results[username]
	case <-ctx.Done():
		return fmt.Errorf("wait for a change of the user group %s: %w", g.id, ctx.Err())
	}
}

// forget ends what was asked for a user.
func (g *group) forget(username string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.wants, username)
}

// run collects for a while, and writes.
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
		// What waits its turn stays, and so does what was said since.
		if !errors.Is(made.results[username], errWaits) && g.wants[username] == was {
			delete(g.wants, username)
		}
	}
}

// errWaits tells that a want is for a later write.
var errWaits = errors.New("it waits its turn")

func (g *group) waits(username, why string) error {
	return fmt.Errorf("%w: %w", settling(username, "the user %s waits for the user group %s, which is %s", username, g.id, why), errWaits)
}

// write does what can be done now, and tells what came of each want.
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
			results[username] = fullError{fmt.Errorf("the user group %s has %d users: %w; have the quota raised, or use another cache", g.id, len(is.UserIds), ErrQuota)}
		}
		come = come[:room]
	}
	g.send(ctx, come, gone, results)
	return results
}

// send sends one kind of change, and lets the other wait.
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

// change is a request about users that all come, or all go.
type change struct {
	group *group
	comes bool
	users []string
}

// send sends the request, and tells whether AWS has taken any of it.
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

// divide does what can be done of a request that AWS has refused. It refuses all of it if it does not like a part, and does not tell which. What
// is so by now is left out, as after a request whose answer was lost, which the SDK sends again. Else halves are sent, until one is taken, and
// then the other waits.
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

// told is what comes of a request for a user.
func (c change) told(username string, err error) error {
	switch code := codeOf(err); {
	case err == nil:
		return settling(username, "the user %s comes into or leaves the user group %s", username, c.group.id)
	case code == codeGroupState:
		return c.group.waits(username, "modifying")
	case code == codeUserQuota || code == codeGroupQuota:
		return fullError{told("add the user "+username+" to the user group "+c.group.id, username, err)}
	}
	return told("change whether the user "+username+" is in the user group "+c.group.id, username, err)
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
	return err //nolint:wrapcheck // who gets it says what it means
}
