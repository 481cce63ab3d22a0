// Command awslab serves the parts of AWS that the tenant operator uses, in memory: SSM parameters and ElastiCache users. Programs with the
// AWS SDK use it with AWS_ENDPOINT_URL.
package main

import (
	"cmp"
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

// How long requests may take to arrive, and to be answered when the process ends.
const (
	headerTimeout = 10 * time.Second
	endTimeout    = 5 * time.Second
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

// flags are what a person can say.
type flags struct {
	listen, redis, groups string
	options               awslab.Options
}

func parse(args []string, out io.Writer) (flags, error) {
	var said flags
	var settle, groupSettle time.Duration
	set := flag.NewFlagSet("awslab", flag.ContinueOnError)
	set.SetOutput(out)
	set.StringVar(&said.listen, "listen", "127.0.0.1:4566", "address to serve on; port 0 chooses one")
	set.StringVar(&said.redis, "redis", "", "URL of the Redis onto which users are written, as redis://admin:password@127.0.0.1:6379; none if empty")
	set.StringVar(&said.groups, "groups", "tenants", "ids of the user groups that there are at the start, separated by commas")
	set.DurationVar(&settle, "settle", 2*time.Second, "how long users are creating, modifying and deleting")
	set.DurationVar(&groupSettle, "group-settle", 0, "how long user groups are modifying; as --settle if 0")
	set.DurationVar(&said.options.ReadLag, "read-lag", 0, "for how long reads do not see a write")
	set.DurationVar(&said.options.RecreateAfter, "recreate-after", 0, "for how long the name of a deleted parameter is taken")
	set.IntVar(&said.options.MaxGroupUsers, "group-users", 100, "how many users may be in a user group")
	set.Usage = func() {
		fmt.Fprintln(out, "awslab plays SSM parameters and ElastiCache users. It keeps all in memory and checks no rights.")
		fmt.Fprintln(out, "\nPrograms find it with AWS_ENDPOINT_URL=http://ADDRESS, AWS_REGION, and any AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
		fmt.Fprintln(out, "GET / shows the journal of calls.\n\nFlags:")
		set.PrintDefaults()
	}
	if err := set.Parse(args); err != nil {
		return flags{}, err //nolint:wrapcheck // it names the flag
	}
	groupSettle = cmp.Or(groupSettle, settle)
	said.options.Users = awslab.Settle{Create: settle, Modify: settle, Delete: settle}
	said.options.Groups = awslab.Settle{Create: groupSettle, Modify: groupSettle, Delete: groupSettle}
	return said, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	said, err := parse(args, out)
	if err != nil {
		return err
	}
	if said.redis != "" {
		options, err := redis.ParseURL(said.redis)
		if err != nil {
			return errors.New("--redis is no URL such as redis://admin:password@127.0.0.1:6379")
		}
		cache := redis.NewClient(options)
		defer func() { _ = cache.Close() }()
		if err := cache.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("reach the Redis of --redis at %s: %w", options.Addr, err)
		}
		said.options.Cache = cache
	}
	lab := awslab.New(said.options)
	defer lab.Close()
	for id := range strings.SplitSeq(said.groups, ",") {
		lab.AddGroup(strings.TrimSpace(id))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", said.listen)
	if err != nil {
		return fmt.Errorf("listen on --listen %s: %w", said.listen, err)
	}
	fmt.Fprintf(out, "SSM and ElastiCache are on http://%s\n", listener.Addr())
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
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			return fmt.Errorf("stop serving: %w", err)
		}
		return nil
	}
}
