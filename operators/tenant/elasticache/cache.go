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

// The defaults of a Config.
const (
	// DefaultGroupLimit is the default AWS quota of users in a group, including the user default.
	DefaultGroupLimit = 100
	// DefaultEngine is the default engine of users.
	DefaultEngine = "redis"
	// DefaultWindow is how long changes of the members of a group are collected.
	DefaultWindow = 300 * time.Millisecond
	// DefaultRate is the number of AWS requests per second. AWS does not document its limit; the SDK retries throttled requests.
	DefaultRate = 10
)

const active = "active"

// Config describes a cache and its user groups.
type Config struct {
	// Client is an SDK client made from config.LoadDefaultConfig. The Cache never logs request or response bodies, even if the client is
	// set to.
	Client *sdk.Client
	// Groups are the IDs of user groups. Each contains a user with the name default and must be attached to the cache of the Endpoint,
	// otherwise its users cannot log in. AWS currently attaches one group to a cache. A user is added to the first group with capacity, and
	// found in any.
	Groups []string
	// GroupLimit is the maximum number of users in a group, including the user default. The default is DefaultGroupLimit.
	GroupLimit int
	// Engine is redis or valkey, the same as that of the groups. The default is DefaultEngine.
	Engine string
	// Endpoint is the host and port at which passwords are verified.
	Endpoint string
	// TLS is the TLS configuration of the endpoint; nil disables TLS. AWS requires TLS for role-based access control.
	TLS *tls.Config
	// Tags are set on users when they are created.
	Tags map[string]string
	// Window and Rate default to the constants.
	Window time.Duration
	Rate   float64
}

// Cache is a cache with its user groups. It is safe for concurrent use. Use one Cache for each group, so that changes are batched.
type Cache struct {
	config  Config
	groups  []*group
	limiter *rate.Limiter
	// asked maps users to the last request for an access.
	asked sync.Map
}

// request is a request for an access. before is the access that AWS reported before it.
type request struct{ access, before string }

// Open checks a Config. It sends no request.
func Open(config Config) (*Cache, error) {
	config.GroupLimit, config.Engine = cmp.Or(config.GroupLimit, DefaultGroupLimit), cmp.Or(config.Engine, DefaultEngine)
	config.Window, config.Rate = cmp.Or(config.Window, DefaultWindow), cmp.Or(config.Rate, DefaultRate)
	host, port, err := net.SplitHostPort(config.Endpoint)
	switch {
	case config.Client == nil:
		return nil, errors.New("no ElastiCache client: create one with elasticache.NewFromConfig of the AWS SDK")
	case len(config.Groups) == 0:
		return nil, errors.New("no ElastiCache user groups: set the IDs of the groups that are attached to the cache")
	case slices.Contains(config.Groups, ""):
		return nil, errors.New("empty ElastiCache user group ID: set it or remove it")
	case config.Engine != "redis" && config.Engine != "valkey":
		return nil, fmt.Errorf("invalid ElastiCache engine %q: must be redis or valkey", config.Engine)
	case err != nil || host == "" || port == "":
		return nil, fmt.Errorf("invalid ElastiCache endpoint %q: must be host:port, for example master.shop.abc.euc1.cache.amazonaws.com:6379", config.Endpoint)
	}
	opened := &Cache{config: config, limiter: rate.NewLimiter(rate.Limit(config.Rate), max(1, int(config.Rate)))}
	for i, id := range config.Groups {
		if slices.ContainsFunc(config.Groups[:i], func(other string) bool { return strings.EqualFold(other, id) }) {
			return nil, fmt.Errorf("duplicate ElastiCache user group %s: list it once", id)
		}
		opened.groups = append(opened.groups, newGroup(opened, strings.ToLower(id)))
	}
	return opened, nil
}

// Check returns an error unless the groups exist and are attached to a cache. It does not test the right to change users.
func (c *Cache) Check(ctx context.Context) error {
	var errs []error
	for _, g := range c.groups {
		_, err := g.attached(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// quiet removes request and response bodies from the SDK's log, because they can contain passwords.
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

// turn waits until the rate limit allows another request.
func (c *Cache) turn(ctx context.Context) error {
	if err := c.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for the AWS request rate limit: %w", err)
	}
	return nil
}

// user reads a user. It returns nil if AWS says that the user does not exist.
func (c *Cache) user(ctx context.Context, username string) (*types.User, error) {
	if err := c.turn(ctx); err != nil {
		return nil, err
	}
	found, err := c.config.Client.DescribeUsers(ctx, &sdk.DescribeUsersInput{UserId: &username}, quiet)
	if codeOf(err) == codeUserNotFound {
		return nil, nil //nolint:nilnil // A missing user is a valid answer.
	}
	if err != nil {
		return nil, told("read ElastiCache user "+username, err)
	}
	if len(found.Users) != 1 {
		return nil, fmt.Errorf("read ElastiCache user: got %d users with the ID %s", len(found.Users), username)
	}
	return &found.Users[0], nil
}

// all reads all users of the account.
func (c *Cache) all(ctx context.Context) ([]types.User, error) {
	var found []types.User
	for pages := sdk.NewDescribeUsersPaginator(c.config.Client, &sdk.DescribeUsersInput{}); pages.HasMorePages(); {
		if err := c.turn(ctx); err != nil {
			return nil, err
		}
		page, err := pages.NextPage(ctx, quiet)
		if err != nil {
			return nil, told("list ElastiCache users", err)
		}
		found = append(found, page.Users...)
	}
	return found, nil
}

// Apps returns the sorted names of the apps of a tenant that have users with their owner's mark. A shortened user ID does not contain the
// name of its app; such an app is found by its credential.
func (c *Cache) Apps(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error) {
	users, err := c.all(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, user := range users {
		if app, is := of.AppOfElastiCacheUser(aws.ToString(user.UserId)); is && patterns(&user).Whose(owner(app)) == credential.Present {
			found = append(found, app.Name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// claim reads a user, or nil. It returns credential.ErrConflict unless the user belongs to the owner or is in an allowed state, and
// ErrSettling unless it is active.
func (c *Cache) claim(ctx context.Context, owner credential.Owner, username string, allowed ...credential.State) (*types.User, error) {
	is, err := c.user(ctx, username)
	if err != nil || is == nil {
		return nil, err
	}
	if state := patterns(is).Whose(owner); state != credential.Present && !slices.Contains(allowed, state) {
		return nil, fmt.Errorf("ElastiCache user %s is %s: %w", username, state, credential.ErrConflict)
	}
	return is, settled(is)
}

// settled returns ErrSettling if a user is not active.
func settled(is *types.User) error {
	if status := aws.ToString(is.Status); status != active {
		return settling("ElastiCache user %s is %s", aws.ToString(is.UserId), status)
	}
	return nil
}

// create requests a new user.
func (c *Cache) create(ctx context.Context, record credential.Record, access granted) error {
	doing := "create ElastiCache user " + record.Username
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
		// Another writer created it, or the answer to an earlier request of ours was lost.
		return settling("%s: it exists already", doing)
	}
	return told(doing, err, record.Password)
}

// passwords returns the passwords of records as the complete list of a user.
func passwords(records ...credential.Record) *types.AuthenticationMode {
	mode := &types.AuthenticationMode{Type: types.InputAuthenticationTypePassword}
	for _, record := range records {
		mode.Passwords = append(mode.Passwords, record.Password.Reveal())
	}
	return mode
}

// modify requests another access of a user, unless it is nil, and other passwords, if there are records.
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
	return told("modify ElastiCache user "+username, err, secret...)
}
