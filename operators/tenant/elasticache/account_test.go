package elasticache_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// The emulator proves our protocol, not AWS. Where an account is given, a user is made, proven, given a second password, and
// deleted there: EINMAL_AWS_TESTS=1, and EINMAL_AWS_CACHE=host:port with TLS, whose user group is EINMAL_AWS_GROUP.
func TestAUserOnARealAccount(t *testing.T) {
	t.Parallel()
	group, endpoint := os.Getenv("EINMAL_AWS_GROUP"), os.Getenv("EINMAL_AWS_CACHE")
	if os.Getenv("EINMAL_AWS_TESTS") != "1" || group == "" || endpoint == "" {
		fmt.Fprintln(os.Stderr, "NOT TRIED ON A REAL ELASTICACHE: set EINMAL_AWS_TESTS=1, EINMAL_AWS_CACHE=host:port and EINMAL_AWS_GROUP to do so.")
		return
	}
	account, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := strings.Cut(endpoint, ":")
	cache, err := elasticache.Open(elasticache.Config{
		Client: sdk.NewFromConfig(account), Groups: []string{group}, Endpoint: endpoint, TLS: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	app := names.Tenant{Name: "einmal-test"}.App(strings.ToLower(rand.Text()))
	users, owner, username := elasticache.Users{Cache: cache, Access: redis.Access{Profile: redis.ReadWrite, Prefix: app.KeyPrefix("")}}, ownerOf(app), app.ElastiCacheUser()
	t.Cleanup(func() {
		slowly(t, "delete the user "+username, func(ctx context.Context) error { return users.Delete(ctx, owner, username) })
	})
	first := credential.Record{Username: username, Password: credential.NewPassword(rand.Text()), Generation: 1}
	second := credential.Record{Username: username, Password: credential.NewPassword(rand.Text()), Generation: 2}
	accepted := func(record credential.Record) {
		slowly(t, "log in as "+username, func(ctx context.Context) error {
			_, level := users.ConvergeAccess(ctx, owner, username)
			state, err := users.Observe(ctx, owner, username, record.Password)
			if err == nil && state != credential.Accepted {
				t.Errorf("generation %d is %s", record.Generation, state)
			}
			return errors.Join(err, level)
		})
	}
	if err := users.Create(t.Context(), owner, first); err != nil {
		t.Fatal(err)
	}
	accepted(first)
	slowly(t, "rotate "+username, func(ctx context.Context) error {
		return users.Set(ctx, owner, credential.Assignment{Record: second, Keep: true, Previous: first})
	})
	accepted(second)
	accepted(first)
}

// slowly does something until it has settled, at the pace of AWS.
func slowly(t *testing.T, what string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Minute)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil {
			return
		}
		if !errors.Is(err, elasticache.ErrSettling) {
			t.Errorf("%s: %v", what, err)
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("%s: %v", what, err)
			return
		case <-time.After(10 * time.Second):
		}
	}
}
