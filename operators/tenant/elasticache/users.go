package elasticache

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// Users are users of a cache with one access. A user has one password, or two during the overlap of a rotation. Connections stay open when
// a password is retired: AWS can end them only by deleting the user.
type Users struct {
	Cache *Cache
	// Access requires Redis 7 or Valkey, which support rules for subcommands.
	Access redis.Access
}

var _ credential.Rotator = Users{}

// Observe reads the user from the AWS API, and verifies the password at the cache. A user is Accepted or Refused only by the cache's own
// answer, and only if it is active and in a group. A change in progress is ErrSettling, and so is a user in no group: ConvergeAccess adds
// it to one, so it must be called even if credential.User.Converge returns ErrSettling. So readers do not get a credential before it works.
func (u Users) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	is, err := u.Cache.user(ctx, username)
	if err != nil {
		return "", err
	}
	if is == nil {
		return credential.Absent, nil
	}
	if state := patterns(is).Whose(owner); state != credential.Present {
		return state, nil
	}
	if err := settled(is); err != nil {
		return "", err
	}
	switch {
	case password.IsZero():
		return credential.Present, nil
	case u.Cache.groupOf(is) == nil:
		return "", settling("ElastiCache user %s is in no user group and cannot log in", username)
	case is.Authentication == nil || is.Authentication.Type != types.AuthenticationTypePassword:
		return credential.Refused, nil // It needs no password, or uses another kind of authentication.
	}
	state, err := u.Cache.login(ctx, username, password)
	if state != credential.Refused {
		return state, err
	}
	if err := u.confirm(ctx, username); err != nil {
		return "", err
	}
	return u.Cache.login(ctx, username, password) // A single refusal can be stale, and would reset the password.
}

// confirm returns ErrSettling if the cache may not have the current state of the user: if the group is being modified or is not attached to
// a cache, or if the user is changing.
func (u Users) confirm(ctx context.Context, username string) error {
	is, err := u.Cache.user(ctx, username)
	if err != nil {
		return err
	}
	in := u.Cache.groupOf(is)
	if in == nil {
		return settling("ElastiCache user %s has just left its user group", username)
	}
	if err := settled(is); err != nil {
		return err
	}
	described, err := in.attached(ctx)
	if err == nil && aws.ToString(described.Status) != active {
		err = settling("user group %s of ElastiCache user %s is %s", in.id, username, aws.ToString(described.Status))
	}
	return err
}

// groupOf returns the first of the configured groups that a user is in, or nil.
func (c *Cache) groupOf(is *types.User) *group {
	if is == nil {
		return nil
	}
	at := slices.IndexFunc(c.groups, func(g *group) bool { return slices.Contains(is.UserGroupIds, g.id) })
	if at < 0 {
		return nil
	}
	return c.groups[at]
}

// Create requests the user with its access and mark. The user is in no group yet. If it exists, the error is ErrSettling, and the next
// observation shows its owner.
func (u Users) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	if err := u.Access.Check(); err != nil {
		return err
	}
	return u.Cache.create(ctx, record, grantOf(u.Access, owner).keeps(redis.GivenPattern(owner, record)))
}

// Set sets the password of the user, with the mark and the access. With Keep, the Previous must be known, because AWS replaces the whole
// list of passwords and does not reveal the old ones.
func (u Users) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	if err := u.Access.Check(); err != nil {
		return err
	}
	is, err := u.Cache.claim(ctx, owner, change.Username, credential.Unmarked)
	if err != nil {
		return err
	}
	if is == nil {
		return fmt.Errorf("set password of ElastiCache user %s: the user does not exist", change.Username)
	}
	if err := patterns(is).Given(owner, change.Username).CheckSet(change.Record); err != nil {
		return err
	}
	accepted := []credential.Record{change.Record}
	previous := change.Previous
	if change.Keep && previous.Username == change.Username && !previous.Password.IsZero() && previous.Password != change.Password {
		accepted = []credential.Record{previous, change.Record}
	}
	access := grantOf(u.Access, owner).keeps(redis.GivenPattern(owner, change.Record))
	return u.Cache.modify(ctx, change.Username, &access, accepted...)
}

// Superseded returns whether the user has two passwords, or needs none, and the credential that its access string names. There are no other
// users: a user can have two passwords.
func (u Users) Superseded(ctx context.Context, owner credential.Owner, current credential.Record, _ []string) (credential.Beside, error) {
	is, err := u.Cache.claim(ctx, owner, current.Username)
	if err != nil || is == nil {
		return credential.Beside{}, err
	}
	given := patterns(is).Given(owner, current.Username)
	return credential.Beside{Accepted: !alone(is), Latest: given, Current: given}, nil
}

// alone reports whether a user has at most one password and needs it.
func alone(is *types.User) bool {
	how := is.Authentication
	return how != nil && how.Type == types.AuthenticationTypePassword && aws.ToInt32(how.PasswordCount) <= 1
}

// Retire removes all passwords but the current one, after a login has shown that the cache accepts it.
func (u Users) Retire(ctx context.Context, owner credential.Owner, current credential.Record, _ []string) error {
	is, err := u.Cache.claim(ctx, owner, current.Username)
	if err != nil || is == nil || alone(is) {
		return err
	}
	state, err := u.Cache.login(ctx, current.Username, current.Password)
	if err != nil {
		return err
	}
	if state != credential.Accepted {
		return fmt.Errorf("ElastiCache user %s: the current password is not accepted: %w", current.Username, credential.ErrUnproven)
	}
	return u.Cache.modify(ctx, current.Username, nil, current)
}

// ConvergeAccess gives the user its access and adds it to a group. It does not change passwords. It reports whether it wrote anything. A
// change in progress is ErrSettling: call it again. It does nothing if the user does not exist. It returns ErrQuota if no group has
// capacity, and ErrUnproven if AWS does not report the access that was set.
func (u Users) ConvergeAccess(ctx context.Context, owner credential.Owner, username string) (bool, error) {
	if err := u.Access.Check(); err != nil {
		return false, err
	}
	is, err := u.Cache.claim(ctx, owner, username)
	if err != nil || is == nil {
		return false, err
	}
	access := grantOf(u.Access, owner).keeps(patterns(is).Naming()...)
	if !access.is(is) {
		return u.Cache.grant(ctx, is, access)
	}
	u.Cache.asked.Delete(username)
	if u.Cache.groupOf(is) != nil {
		return false, nil
	}
	return u.Cache.join(ctx, username)
}

// grant requests another access of a user. It does not repeat the request while AWS reports the old access, because that could go on
// forever.
func (c *Cache) grant(ctx context.Context, is *types.User, access granted) (bool, error) {
	username := aws.ToString(is.UserId)
	asked := request{access.String(), aws.ToString(is.AccessString)}
	if last, _ := c.asked.Load(username); last == asked {
		return false, fmt.Errorf("the access of ElastiCache user %s is %q and differs from what was set: %w; compare it with %q",
			username, asked.before, credential.ErrUnproven, access)
	}
	if err := c.modify(ctx, username, &access); err != nil {
		return false, err
	}
	c.asked.Store(username, asked)
	return true, settling("the access of ElastiCache user %s is changing", username)
}

// join adds a user to the first group with capacity.
func (c *Cache) join(ctx context.Context, username string) (bool, error) {
	var err error
	for _, g := range c.groups {
		if err = g.change(ctx, username, true); !errors.Is(err, ErrQuota) {
			break
		}
	}
	if err == nil {
		err = settling("ElastiCache user %s is being added to its user group", username)
	}
	return true, err
}

// Delete removes the user from the groups and then deletes it. It returns ErrSettling until AWS reports that the user does not exist, and
// nil then. If the user belongs to another owner or has no mark, Delete does not change it and returns ErrConflict.
func (u Users) Delete(ctx context.Context, owner credential.Owner, username string) error {
	for _, g := range u.Cache.groups {
		g.forget(username)
	}
	is, err := u.Cache.claim(ctx, owner, username)
	if err != nil || is == nil {
		return err
	}
	if in := u.Cache.groupOf(is); in != nil {
		if err := in.change(ctx, username, false); err != nil {
			return err
		}
		return settling("ElastiCache user %s is being removed from user group %s", username, in.id)
	}
	if err := u.Cache.turn(ctx); err != nil {
		return err
	}
	_, err = u.Cache.config.Client.DeleteUser(ctx, &sdk.DeleteUserInput{UserId: &username}, quiet)
	if err != nil && codeOf(err) != codeUserNotFound {
		return told("delete ElastiCache user "+username, err)
	}
	return settling("ElastiCache user %s is being deleted", username)
}
