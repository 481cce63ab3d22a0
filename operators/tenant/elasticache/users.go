package elasticache

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"

	"github.com/einmal-operators/einmal/credential"
)

// Users are the users of a cache that have an access. A user has one password, and two through the overlap of a rotation. All that is open
// when a password is taken out of use stays open: AWS has no way to end it but to delete the user.
type Users struct {
	Cache  *Cache
	Access Access
}

var _ credential.Rotator = Users{}

// Observe asks AWS for the user, and the cache for the password: only what the cache says itself of a user that is active and in a group is Accepted
// or Refused. What AWS is still at is an ErrSettling, and so is a user in none of the groups: ConvergeAccess puts it into one, also when
// credential.User.Converge says ErrSettling. So readers get a credential when it works, and not before.
func (u Users) Observe(ctx context.Context, owner credential.Owner, username string, password credential.Password) (credential.State, error) {
	is, err := u.Cache.user(ctx, username)
	if err != nil {
		return "", err
	}
	if is == nil {
		return credential.Absent, nil
	}
	if state := whose(is, owner); state != credential.Present {
		return state, nil
	}
	if err := settled(is); err != nil {
		return "", err
	}
	switch {
	case password.IsZero():
		return credential.Present, nil
	case u.Cache.groupOf(is) == nil:
		return "", settling(username, "the user %s of ElastiCache is in no user group, so it cannot log in", username)
	case is.Authentication == nil || is.Authentication.Type != types.AuthenticationTypePassword:
		return credential.Refused, nil // It lets in whoever comes, or asks for something else.
	}
	state, err := u.Cache.login(ctx, username, password)
	if state != credential.Refused {
		return state, err
	}
	if err := u.confirm(ctx, username); err != nil {
		return "", err
	}
	return u.Cache.login(ctx, username, password) // One refusal is not enough to set a password for (tenant-and-database.md §2, Details).
}

// confirm tells whether the cache may not know what AWS has: the group is at something, or attached to no cache, or the user is by now.
func (u Users) confirm(ctx context.Context, username string) error {
	is, err := u.Cache.user(ctx, username)
	if err != nil {
		return err
	}
	in := u.Cache.groupOf(is)
	if in == nil {
		return settling(username, "the user %s of ElastiCache has just left its group", username)
	}
	if err := settled(is); err != nil {
		return err
	}
	described, err := in.attached(ctx)
	if err == nil && aws.ToString(described.Status) != active {
		err = settling(username, "the user group %s of the user %s is %s", in.id, username, aws.ToString(described.Status))
	}
	return err
}

// groupOf is the first of the groups that a user is in, nil if it is in none of them.
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

// Create asks for the user, which has the access and the mark from the beginning, and is in no group yet. If it is there, that is an ErrSettling:
// the next look tells whose it is.
func (u Users) Create(ctx context.Context, owner credential.Owner, record credential.Record) error {
	if err := u.Access.Check(); err != nil {
		return err
	}
	return u.Cache.create(ctx, record, grantOf(u.Access, owner).keeps(givenPattern(owner, record)))
}

// Set makes the password the one that the user accepts, with the mark and the access. To keep what it accepts, the Previous must be known:
// AWS replaces the whole list, and does not tell what is in it.
func (u Users) Set(ctx context.Context, owner credential.Owner, change credential.Assignment) error {
	if err := u.Access.Check(); err != nil {
		return err
	}
	is, err := u.Cache.claim(ctx, owner, change.Username, credential.Unmarked)
	if err != nil {
		return err
	}
	if is == nil {
		return fmt.Errorf("ElastiCache has no user %s whose password could be set", change.Username)
	}
	accepted := []credential.Record{change.Record}
	previous := change.Previous
	if change.Keep && previous.Username == change.Username && !previous.Password.IsZero() && previous.Password != change.Password {
		accepted = []credential.Record{previous, change.Record}
	}
	access := grantOf(u.Access, owner).keeps(givenPattern(owner, change.Record))
	return u.Cache.modify(ctx, change.Username, &access, accepted...)
}

// Superseded returns whether the user has two passwords, or lets everyone in, and the credential that its access string names. Others there are
// none: a user has two passwords here.
func (u Users) Superseded(ctx context.Context, owner credential.Owner, current credential.Record, _ []string) (credential.Beside, error) {
	is, err := u.Cache.claim(ctx, owner, current.Username)
	if err != nil || is == nil {
		return credential.Beside{}, err
	}
	given := givenTo(is, owner)
	return credential.Beside{Accepted: !alone(is), Latest: given, Current: given}, nil
}

// Keep writes into the access string of the user which credential it was given, and leaves the rest of it and the passwords alone. AWS takes its time
// for that, as for every change.
func (u Users) Keep(ctx context.Context, owner credential.Owner, current credential.Record) error {
	is, err := u.Cache.claim(ctx, owner, current.Username)
	if err != nil || is == nil || givenTo(is, owner) == credential.GivenOf(current) {
		return err
	}
	access := grantOf(u.Access, owner)
	if !access.is(is) {
		return nil // ConvergeAccess puts that right first.
	}
	access = access.keeps(givenPattern(owner, current))
	if u.Cache.wasAsked(is, access) {
		return nil // AWS does not show it, and would be asked for ever.
	}
	if err := u.Cache.modify(ctx, current.Username, &access); err != nil {
		return err
	}
	u.Cache.ask(is, access)
	return nil
}

// wasAsked reports whether AWS was asked for an access of a user already, and still shows what it showed before.
func (c *Cache) wasAsked(is *types.User, access granted) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, asked := c.asked[aws.ToString(is.UserId)+" "+access.String()]
	return asked && before == aws.ToString(is.AccessString)
}

// ask notes that AWS was asked for an access of a user, and what it showed before.
func (c *Cache) ask(is *types.User, access granted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[aws.ToString(is.UserId)+" "+access.String()] = aws.ToString(is.AccessString)
}

// alone tells whether a user has one password.
func alone(is *types.User) bool {
	how := is.Authentication
	return how != nil && how.Type == types.AuthenticationTypePassword && aws.ToInt32(how.PasswordCount) <= 1
}

// Retire leaves the user the current password alone, after a login with it has shown that the cache accepts it.
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
		return fmt.Errorf("the ElastiCache does not accept the current password of the user %s: %w", current.Username, credential.ErrUnproven)
	}
	return u.Cache.modify(ctx, current.Username, nil, current)
}

// ConvergeAccess makes the user have the access, and be in a group, and leaves its passwords alone. It tells whether it had to write: where
// all is as it should be it does not. What it has begun is an ErrSettling: call it again. It does nothing about a user that is not there. Where
// no group has room it is an ErrQuota. It is ErrUnproven if AWS does not show the access that it was given.
func (u Users) ConvergeAccess(ctx context.Context, owner credential.Owner, username string) (bool, error) {
	if err := u.Access.Check(); err != nil {
		return false, err
	}
	is, err := u.Cache.claim(ctx, owner, username)
	if err != nil || is == nil {
		return false, err
	}
	access := grantOf(u.Access, owner).keeps(kept(is)...)
	if !access.is(is) {
		return u.Cache.grant(ctx, is, access)
	}
	u.Cache.shown(username, access)
	if u.Cache.groupOf(is) != nil {
		return false, nil
	}
	return u.Cache.join(ctx, username)
}

// grant gives a user another access, and not again while AWS shows what it showed before: it would be given for ever.
func (c *Cache) grant(ctx context.Context, is *types.User, access granted) (bool, error) {
	username := aws.ToString(is.UserId)
	if c.wasAsked(is, access) {
		return false, fmt.Errorf("ElastiCache shows another access of the user %s than it was given, %q: %w; compare it with %q",
			username, aws.ToString(is.AccessString), credential.ErrUnproven, access)
	}
	if err := c.modify(ctx, username, &access); err != nil {
		return false, err
	}
	c.ask(is, access)
	return true, settling(username, "the access of the user %s of ElastiCache changes", username)
}

// Scripting reports whether a user of the owner has the access with the right to run scripts. It is false if there is no such user.
func (u Users) Scripting(ctx context.Context, owner credential.Owner, username string) (bool, error) {
	is, err := u.Cache.user(ctx, username)
	if err != nil || is == nil {
		return false, err
	}
	with := u.Access
	with.Scripting = true
	return grantOf(with, owner).is(is), nil
}

// shown notes that AWS shows the access of a user.
func (c *Cache) shown(username string, access granted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, username+" "+access.String())
}

// join puts a user into the first group that has room.
func (c *Cache) join(ctx context.Context, username string) (bool, error) {
	var err error
	for _, g := range c.groups {
		if err = g.change(ctx, username, true); !isFull(err) {
			break
		}
	}
	if err == nil {
		err = settling(username, "the user %s of ElastiCache comes into its group", username)
	}
	return true, err
}

// Delete takes the user out of the groups, then deletes it, and is an ErrSettling until AWS says that there is none. What is not there is
// removed; what is another's, or carries no mark, is ErrConflict, and stays.
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
		return settling(username, "the user %s of ElastiCache leaves the user group %s", username, in.id)
	}
	if err := u.Cache.turn(ctx); err != nil {
		return err
	}
	_, err = u.Cache.config.Client.DeleteUser(ctx, &sdk.DeleteUserInput{UserId: &username}, quiet)
	if err != nil && codeOf(err) != codeUserNotFound {
		return told("delete the user "+username+" of ElastiCache", username, err)
	}
	return settling(username, "the user %s of ElastiCache is being deleted", username)
}
