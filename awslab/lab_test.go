package awslab_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
	"github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/awslab"
)

// patience is for how long a test waits for what must come.
const patience = 10 * time.Second

// cacheAddress is where the Redis of the package's tests is. It is set before they run.
var cacheAddress string //nolint:gochecknoglobals // one server for all tests of the package

func TestMain(m *testing.M) {
	os.Exit(run(m)) //nolint:forbidigo // it is the main of the tests
}

func run(m *testing.M) int {
	stop, err := startRedis()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	return m.Run()
}

// startRedis starts a Redis that keeps nothing.
func startRedis() (func(), error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("the tests need redis-server: tools/servers.sh says how to install it")
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().(*net.TCPAddr)
	_ = listener.Close()
	folder, err := os.MkdirTemp("", "awslab")
	if err != nil {
		return nil, err
	}
	server := exec.CommandContext(context.Background(), program, "--port", fmt.Sprint(address.Port), "--bind", "127.0.0.1", "--save", "",
		"--dir", folder, "--logfile", filepath.Join(folder, "log"))
	if err := server.Start(); err != nil {
		return nil, err
	}
	cacheAddress = address.String()
	stop := func() { _, _, _ = server.Process.Kill(), server.Wait(), os.RemoveAll(folder) }
	client := redis.NewClient(&redis.Options{Addr: cacheAddress, MaxRetries: 100})
	defer func() { _ = client.Close() }()
	if err := client.Ping(context.Background()).Err(); err != nil {
		stop()
		return nil, fmt.Errorf("redis-server does not start: %w", err)
	}
	return stop, nil
}

// world is a served Lab with the SDK's clients for it.
type world struct {
	*testing.T
	lab        *awslab.Lab
	parameters *ssm.Client
	caches     *elasticache.Client
}

func newWorld(t *testing.T, options awslab.Options) world {
	t.Helper()
	cache := redis.NewClient(&redis.Options{Addr: cacheAddress})
	options.Cache = cache
	lab := awslab.New(options)
	server := httptest.NewServer(lab)
	t.Cleanup(func() { server.Close(); lab.Close(); _ = cache.Close() })
	config := awslab.Config(server.URL)
	config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}
	return world{t, lab, ssm.NewFromConfig(config), elasticache.NewFromConfig(config)}
}

// says expects an error with a code, "" for none.
func (w world) says(err error, code string) {
	w.Helper()
	told, ok := errors.AsType[smithy.APIError](err)
	switch {
	case code == "" && err != nil, code != "" && !ok:
		w.Fatalf("it says %v, want the code %q", err, code)
	case ok && told.ErrorCode() != code:
		w.Fatalf("it says %s, want %q: %v", told.ErrorCode(), code, err)
	}
}

// eventually waits until something holds.
func (w world) eventually(what string, holds func() bool) {
	w.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for end := time.Now().Add(patience); !holds(); <-ticks.C {
		if time.Now().After(end) {
			w.Fatalf("after %s still not: %s", patience, what)
		}
	}
}

// login tries a user's password on the Redis.
func (w world) login(name, password string) error {
	w.Helper()
	client := redis.NewClient(&redis.Options{Addr: cacheAddress, Username: name, Password: password, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	return client.Ping(w.Context()).Err()
}

// forget makes the Redis forget a user.
func (w world) forget(name string) error {
	client := redis.NewClient(&redis.Options{Addr: cacheAddress})
	defer func() { _ = client.Close() }()
	return client.Do(w.Context(), "ACL", "DELUSER", name).Err()
}
