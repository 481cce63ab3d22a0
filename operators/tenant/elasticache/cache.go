package elasticache

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"
	"golang.org/x/time/rate"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// What holds if a Config says nothing else.
const (
	// DefaultGroupLimit is AWS's quota of users in a group, the user default among them, if nobody has raised it.
	DefaultGroupLimit = 100
	// DefaultEngine is that of users.
	DefaultEngine = "redis"
	// DefaultWindow is for how long changes of a group's members are put together.
	DefaultWindow = 300 * time.Millisecond
	// DefaultTimeout is how long the cache has for a login.
	DefaultTimeout = 5 * time.Second
	// DefaultRate is how many requests a second are sent to AWS, which does not tell how many it takes. The SDK tries those again that are
	// too many.
	DefaultRate = 10
)

const active = "active"

// Config is where a cache is, and who administers it.
type Config struct {
	// Client is that of the SDK, from its config.LoadDefaultConfig. What it is told to log of bodies, the Cache leaves out.
	Client *sdk.Client
	// Groups are the ids of user groups. Each has a user with the name default, and is attached to the cache of the Endpoint, else its users
	// cannot log in. AWS attaches one group to a cache, so there is one, unless AWS changes that. A user goes to the first that has room, and is
	// found again in any.
	Groups []string
	// GroupLimit is how many users a group takes, the user default among them; 0 is DefaultGroupLimit.
	GroupLimit int
	// Engine is redis or valkey, as that of the groups; "" is DefaultEngine.
	Engine string
	// Endpoint is the host and port at which passwords are tried.
	Endpoint string
	// TLS is how to speak TLS with the endpoint, which AWS asks for with role-based access control; nil is not at all.
	TLS *tls.Config
	// Tags are given to users when they are created.
	Tags map[string]string
	// Window, Timeout and Rate are as the constants say if they are 0.
	Window, Timeout time.Duration
	Rate            float64
}

// Cache is a cache with its user groups. It may be used by many at the same time, and should be: one for each group puts changes together.
type Cache struct {
	config  Config
	groups  []*group
	limiter *rate.Limiter

	mu sync.Mutex
	// asked has what AWS gave back of a user's access before it was last asked to change it to what the key says.
	asked map[string]string
}

// Open checks a Config, and calls nobody.
func Open(config Config) (*Cache, error) {
	config.GroupLimit, config.Engine = cmp.Or(config.GroupLimit, DefaultGroupLimit), cmp.Or(config.Engine, DefaultEngine)
	config.Window, config.Timeout = cmp.Or(config.Window, DefaultWindow), cmp.Or(config.Timeout, DefaultTimeout)
	config.Rate = cmp.Or(config.Rate, DefaultRate)
	host, port, err := net.SplitHostPort(config.Endpoint)
	switch {
	case config.Client == nil:
		return nil, errors.New("the client of ElastiCache is missing: make one with elasticache.NewFromConfig of the AWS SDK")
	case len(config.Groups) == 0:
		return nil, errors.New("the ElastiCache has no user groups: name the ids of those that are attached to it")
	case slices.Contains(config.Groups, ""):
		return nil, errors.New("a user group of the ElastiCache has no id: name it, or leave it out")
	case config.Engine != "redis" && config.Engine != "valkey":
		return nil, fmt.Errorf("the engine of the ElastiCache is %q: choose redis or valkey", config.Engine)
	case err != nil || host == "" || port == "":
		return nil, fmt.Errorf("the endpoint %q of the ElastiCache is no host and port: write it as master.shop.abc.euc1.cache.amazonaws.com:6379", config.Endpoint)
	}
	opened := &Cache{config: config, limiter: rate.NewLimiter(rate.Limit(config.Rate), max(1, int(config.Rate))), asked: map[string]string{}}
	for i, id := range config.Groups {
		if slices.ContainsFunc(config.Groups[:i], func(other string) bool { return strings.EqualFold(other, id) }) {
			return nil, fmt.Errorf("the user group %s of the ElastiCache is named twice: name it once", id)
		}
		opened.groups = append(opened.groups, newGroup(opened, strings.ToLower(id)))
	}
	return opened, nil
}

// Check tells whether the groups are there and attached to a cache.
func (c *Cache) Check(ctx context.Context) error {
	var errs []error
	for _, g := range c.groups {
		_, err := g.attached(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// quiet keeps passwords out of the SDK's log: what was sent, and what AWS answers, which could quote it.
func quiet(o *sdk.Options) {
	if o.ClientLogMode.IsRequestWithBody() {
		o.ClientLogMode |= aws.LogRequest
	}
	if o.ClientLogMode.IsResponseWithBody() {
		o.ClientLogMode |= aws.LogResponse
	}
	o.ClientLogMode.ClearRequestWithBody()
	o.ClientLogMode.ClearResponseWithBody()
	o.ClientLogMode.ClearRetries()
}

// turn waits until a request may be sent.
func (c *Cache) turn(ctx context.Context) error {
	if err := c.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for a turn below the limit of requests: %w", err)
	}
	return nil
}

// user asks for a user, nil if AWS says that there is none.
func (c *Cache) user(ctx context.Context, username string) (*types.User, error) {
	if err := c.turn(ctx); err != nil {
		return nil, err
	}
	found, err := c.config.Client.DescribeUsers(ctx, &sdk.DescribeUsersInput{UserId: &username}, quiet)
	if codeOf(err) == codeUserNotFound {
		return nil, nil //nolint:nilnil // No user is an answer, and no error.
	}
	if err != nil {
		return nil, told("look for the user "+username+" of ElastiCache", username, err)
	}
	if len(found.Users) != 1 {
		return nil, fmt.Errorf("ElastiCache tells of %d users with the id %s", len(found.Users), username)
	}
	return &found.Users[0], nil
}

// all asks for all users of the account, a page at a time.
func (c *Cache) all(ctx context.Context) ([]types.User, error) {
	var found []types.User
	for pages := sdk.NewDescribeUsersPaginator(c.config.Client, &sdk.DescribeUsersInput{}); pages.HasMorePages(); {
		if err := c.turn(ctx); err != nil {
			return nil, err
		}
		page, err := pages.NextPage(ctx, quiet)
		if err != nil {
			return nil, told("list the users of ElastiCache", "", err)
		}
		found = append(found, page.Users...)
	}
	return found, nil
}

// Apps returns the names of the apps of a tenant that have users, sorted. A user counts if it carries the mark of the app's owner. Some ids
// were cut, and the name of the app is not in those: such an app is found by its credential.
func (c *Cache) Apps(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error) {
	users, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, user := range users {
		if app, is := of.AppOfElastiCacheUser(aws.ToString(user.UserId)); is && whose(&user, owner(app)) == credential.Present {
			found = append(found, app.Name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// claim asks for a user that must be active, and the owner's or in a state that is allowed too; nil if there is none.
func (c *Cache) claim(ctx context.Context, owner credential.Owner, username string, allowed ...credential.State) (*types.User, error) {
	is, err := c.user(ctx, username)
	if err != nil || is == nil {
		return nil, err
	}
	if state := whose(is, owner); state != credential.Present && !slices.Contains(allowed, state) {
		return nil, fmt.Errorf("ElastiCache has the user %s, and it is %s: %w", username, state, credential.ErrConflict)
	}
	return is, settled(is)
}

// settled tells what AWS is at with a user.
func settled(is *types.User) error {
	if status := aws.ToString(is.Status); status != active {
		return settling(aws.ToString(is.UserId), "the user %s of ElastiCache is %s", aws.ToString(is.UserId), status)
	}
	return nil
}

// create asks for a new user.
func (c *Cache) create(ctx context.Context, record credential.Record, access granted) error {
	doing := "create the user " + record.Username + " of ElastiCache"
	request := &sdk.CreateUserInput{
		UserId: &record.Username, UserName: &record.Username, Engine: &c.config.Engine, AccessString: aws.String(access.String()),
		AuthenticationMode: passwords(record),
	}
	for key, value := range c.config.Tags {
		request.Tags = append(request.Tags, types.Tag{Key: &key, Value: &value})
	}
	if err := c.turn(ctx); err != nil {
		return err
	}
	_, err := c.config.Client.CreateUser(ctx, request, quiet)
	if codeOf(err) == codeUserExists {
		// Somebody was faster, or it is our own request whose answer was lost.
		return settling(record.Username, "%s: it is there already", doing)
	}
	return told(doing, record.Username, err, record.Password)
}

// passwords are those of records, as the whole of what a user accepts.
func passwords(records ...credential.Record) *types.AuthenticationMode {
	mode := &types.AuthenticationMode{Type: types.InputAuthenticationTypePassword}
	for _, record := range records {
		mode.Passwords = append(mode.Passwords, record.Password.Reveal())
	}
	return mode
}

// modify asks for another access of a user, if there is one, and for other passwords, if there are any.
func (c *Cache) modify(ctx context.Context, username string, access *granted, records ...credential.Record) error {
	request := &sdk.ModifyUserInput{UserId: &username}
	if access != nil {
		request.AccessString = aws.String(access.String())
	}
	if len(records) > 0 {
		request.AuthenticationMode = passwords(records...)
	}
	if err := c.turn(ctx); err != nil {
		return err
	}
	_, err := c.config.Client.ModifyUser(ctx, request, quiet)
	var secret []credential.Password
	for _, record := range records {
		secret = append(secret, record.Password)
	}
	return told("modify the user "+username+" of ElastiCache", username, err, secret...)
}
