// Command awslab emulates the parts of AWS that the tenant operator uses, in memory: SSM parameters and ElastiCache users. Programs with
// the AWS SDK use it through AWS_ENDPOINT_URL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/awslab"
)

// headerTimeout is the timeout for reading request headers, shutdownTimeout for completing requests at shutdown.
const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "awslab:", err)
		os.Exit(1)
	}
}

// flags are the values of the command-line flags.
type flags struct {
	listen, redis, groups string
	options               awslab.Options
}

func parse(args []string, out io.Writer) (flags, error) {
	var parsed flags
	var settle time.Duration
	set := flag.NewFlagSet("awslab", flag.ContinueOnError)
	set.SetOutput(out)
	set.StringVar(&parsed.listen, "listen", "127.0.0.1:4566", "address to listen on; port 0 chooses a free port")
	set.StringVar(&parsed.redis, "redis", "", "URL of the Redis to write users to, such as redis://admin:password@127.0.0.1:6379; if empty, users are not written")
	set.StringVar(&parsed.groups, "groups", "tenants", "comma-separated IDs of the user groups to create at the start")
	set.DurationVar(&settle, "settle", 2*time.Second, "how long users and user groups stay in the states creating, modifying and deleting")
	set.Usage = func() {
		fmt.Fprintln(out, "awslab emulates SSM parameters and ElastiCache users. It keeps all state in memory and does not check permissions.")
		fmt.Fprintln(out, "\nTo use it, set AWS_ENDPOINT_URL=http://ADDRESS, AWS_REGION, and any AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
		fmt.Fprintln(out, "GET / returns the journal of calls.\n\nFlags:")
		set.PrintDefaults()
	}
	if err := set.Parse(args); err != nil {
		return flags{}, err //nolint:wrapcheck // it names the flag
	}
	parsed.options.Users, parsed.options.Groups = settle, settle
	return parsed, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	parsed, err := parse(args, out)
	if err != nil {
		return err
	}
	if parsed.redis != "" {
		options, err := redis.ParseURL(parsed.redis)
		if err != nil {
			return errors.New("flag --redis: must be a URL such as redis://admin:password@127.0.0.1:6379") // err may contain the password
		}
		cache := redis.NewClient(options)
		defer func() { _ = cache.Close() }()
		if err := cache.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("flag --redis: connect to Redis at %s: %w", options.Addr, err)
		}
		parsed.options.Cache = cache
	}
	lab := awslab.New(parsed.options)
	defer lab.Close()
	for id := range strings.SplitSeq(parsed.groups, ",") {
		lab.AddGroup(strings.TrimSpace(id))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", parsed.listen)
	if err != nil {
		return fmt.Errorf("flag --listen: listen on %s: %w", parsed.listen, err)
	}
	fmt.Fprintf(out, "serving SSM and ElastiCache on http://%s\n", listener.Addr())
	return serve(ctx, listener, lab)
}

func serve(ctx context.Context, listener net.Listener, lab *awslab.Lab) error {
	server := &http.Server{Handler: lab, ReadHeaderTimeout: headerTimeout}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			return fmt.Errorf("stop serving: %w", err)
		}
		return nil
	}
}
