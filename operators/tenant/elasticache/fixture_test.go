package elasticache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// patience is for how long a test waits for what must come.
const patience = 20 * time.Second

var node *servers.Redis //nolint:gochecknoglobals // one server for all tests of the package

func TestMain(m *testing.M) {
	os.Exit(run(m)) //nolint:forbidigo // it is the main of the tests
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "elasticache")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		node = &servers.Redis{Dir: dir}
		err = node.Start(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = node.Kill() }()
	return m.Run()
}

// world is an ElastiCache with one user group, "tenants", whose users log in to a real Redis, and an SSM for their credentials. Each test uses
// tenants of its own, as all share the Redis.
type world struct {
	*testing.T
	lab    *awslab.Lab
	client *sdk.Client
	store  *ssm.Store
	config elasticache.Config
	users  elasticache.Users
	app    names.App
}

// newWorld makes one. Options are changed by functions of them, of the elasticache.Config, and of the aws.Config.
func newWorld(t *testing.T, tenant string, changes ...any) *world {
	t.Helper()
	var options awslab.Options
	config := elasticache.Config{Groups: []string{"tenants"}, Endpoint: node.Address(), Window: 10 * time.Millisecond, Rate: 1e6}
	var others []func(*aws.Config)
	for _, change := range changes {
		switch change := change.(type) {
		case func(*awslab.Options):
			change(&options)
		case func(*elasticache.Config):
			change(&config)
		case func(*aws.Config):
			others = append(others, change)
		}
	}
	admin := node.Admin()
	options.Cache = admin
	lab := awslab.New(options)
	server := httptest.NewServer(lab)
	t.Cleanup(func() { server.Close(); lab.Close(); _ = admin.Close() })
	of := awslab.Config(server.URL)
	of.Retryer = fast
	for _, change := range others {
		change(&of)
	}
	for _, id := range config.Groups {
		lab.AddGroup(id)
	}
	w := &world{T: t, lab: lab, client: sdk.NewFromConfig(of), config: config, app: names.Tenant{Name: tenant}.App("shop")}
	w.config.Client = w.client
	store, err := ssm.New(ssm.Options{Client: awsssm.NewFromConfig(of), Prefix: "/lab", Limits: ssm.NewLimits(1e6, 1e6)})
	w.none(err)
	w.store = store
	w.users = elasticache.Users{Cache: w.open(), Access: redis.Access{Profile: redis.ReadWrite, Prefix: w.app.KeyPrefix("")}}
	return w
}

// fast tries again at once.
func fast() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
}

// open is another process that uses the same cache.
func (w *world) open() *elasticache.Cache {
	w.Helper()
	cache, err := elasticache.Open(w.config)
	w.none(err)
	return cache
}

// settle makes all changes of users and of groups take so long.
func settle(users, groups time.Duration) func(*awslab.Options) {
	return func(o *awslab.Options) { o.Users, o.Groups = users, groups }
}

func (w *world) none(errs ...error) {
	w.Helper()
	for _, err := range errs {
		if err != nil {
			w.Fatal(err)
		}
	}
}

func ownerOf(of names.App) credential.Owner {
	return credential.Owner{Operator: "tenants.einmal.dev@lab", Name: of.Tenant + "/" + of.Name}
}

func (w *world) owner() credential.Owner { return ownerOf(w.app) }

func (w *world) username() string { return w.app.ElastiCacheUser() }

// user is the credential of the app, with a rotation that was asked for, "" for none.
func (w *world) user(request string) credential.User {
	return credential.User{
		Once:   credential.Once{Store: w.store, Name: w.app.Tenant + "/cache", Owner: w.owner(), Username: w.username(), Request: request},
		System: w.users, Overlap: time.Hour,
	}
}

// provision is what an operator does for an app in each pass.
func (w *world) provision(user credential.User) (credential.Outcome, error) {
	outcome, err := user.Converge(w.Context())
	_, level := w.users.ConvergeAccess(w.Context(), user.Owner, user.Username)
	return outcome, errors.Join(err, level)
}

// provisioned goes on until all is done. Nothing but what settles may come between.
func (w *world) provisioned(user credential.User) credential.Outcome {
	w.Helper()
	var outcome credential.Outcome
	w.settles(func() (err error) {
		outcome, err = w.provision(user)
		return err
	})
	return outcome
}

// settles does something again until it has settled.
func (w *world) settles(do func() error) {
	w.Helper()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for end := time.Now().Add(patience); ; <-ticks.C {
		err := do()
		if err == nil {
			return
		}
		if !errors.Is(err, elasticache.ErrSettling) || time.Now().After(end) {
			w.Fatal(err)
		}
	}
}

// login tries a password.
func (w *world) login(username string, password credential.Password) error {
	client := node.Client(username, password.Reveal())
	defer func() { _ = client.Close() }()
	return client.Ping(w.Context()).Err()
}

// seen is the user as AWS tells of it.
func (w *world) seen(username string) types.User {
	w.Helper()
	found, err := w.client.DescribeUsers(w.Context(), &sdk.DescribeUsersInput{UserId: &username})
	w.none(err)
	return found.Users[0]
}

// plant makes a user past the operator, in the group.
func (w *world) plant(access, password string) {
	w.Helper()
	_, err := w.client.CreateUser(w.Context(), &sdk.CreateUserInput{
		UserId: aws.String(w.username()), UserName: aws.String(w.username()), Engine: aws.String("redis"), AccessString: &access, Passwords: []string{password},
	})
	w.none(err)
	_, err = w.client.ModifyUserGroup(w.Context(), &sdk.ModifyUserGroupInput{UserGroupId: aws.String("tenants"), UserIdsToAdd: []string{w.username()}})
	w.none(err)
}

// witness logs in again and again until it is stopped, which tells how often that was refused.
func (w *world) witness(username string, password credential.Password) (stop func() int) {
	ends, refused := make(chan struct{}), make(chan int, 1)
	go func() {
		bad := 0
		for {
			select {
			case <-ends:
				refused <- bad
				return
			default:
				if w.login(username, password) != nil {
					bad++
				}
			}
		}
	}()
	return func() int {
		close(ends)
		return <-refused
	}
}
