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

// waitTimeout is the timeout of a wait in a test.
const waitTimeout = 10 * time.Second

// cacheAddress is the address of the Redis for all tests. TestMain sets it.
var cacheAddress string //nolint:gochecknoglobals // one server for all tests of the package

func TestMain(m *testing.M) {
	os.Exit(run(m)) //nolint:forbidigo // main function of the tests
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

// startRedis starts a Redis without persistence.
func startRedis() (func(), error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("find redis-server: not on the PATH; tools/servers.sh installs it or explains how")
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
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	return stop, nil
}

// world is a Lab with an HTTP server and SDK clients.
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

// expectCode fails the test unless err has the error code. If the code is empty, err must be nil.
func (w world) expectCode(err error, code string) {
	w.Helper()
	response, ok := errors.AsType[smithy.APIError](err)
	switch {
	case code == "" && err != nil, code != "" && !ok:
		w.Fatalf("error %v, want error code %q", err, code)
	case ok && response.ErrorCode() != code:
		w.Fatalf("error code %s, want %q: %v", response.ErrorCode(), code, err)
	}
}

// eventually waits until the condition holds.
func (w world) eventually(what string, holds func() bool) {
	w.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for end := time.Now().Add(waitTimeout); !holds(); <-ticks.C {
		if time.Now().After(end) {
			w.Fatalf("not true after %s: %s", waitTimeout, what)
		}
	}
}

// login logs in to Redis as a user.
func (w world) login(name, password string) error {
	w.Helper()
	client := redis.NewClient(&redis.Options{Addr: cacheAddress, Username: name, Password: password, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	return client.Ping(w.Context()).Err()
}

// forget deletes a user from Redis.
func (w world) forget(name string) error {
	client := redis.NewClient(&redis.Options{Addr: cacheAddress})
	defer func() { _ = client.Close() }()
	return client.Do(w.Context(), "ACL", "DELUSER", name).Err()
}
