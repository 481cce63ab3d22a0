package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/breaker"
)

// DefaultTimeout is how long a node has for an answer if nothing else is said.
const DefaultTimeout = 5 * time.Second

// oldestVersion is the first major one that has rules for subcommands (release notes of Redis 7.0). Valkey began behind it, with 7.2.
const oldestVersion = 7

// protocol is the version of the protocol that is spoken (RESP2).
const protocol = 2

// Config is where a Redis is, and who administers it.
type Config struct {
	// Nodes are the host and port of every node, replicas too: a replica that is not named here lacks the users on the day that it
	// becomes the primary.
	Nodes []string
	// Username and Password are those of the administrator, on all nodes.
	Username string
	Password credential.Password
	// TLS is how to speak TLS with the nodes; nil is not at all.
	TLS *tls.Config
	// Timeout is how long a node has for each answer; 0 is DefaultTimeout.
	Timeout time.Duration
}

// Nodes are all nodes of a Redis, with one small pool of connections each. They may be used at the same time.
type Nodes struct {
	nodes []*node
}

// Open prepares clients of all nodes. It connects to none: a node that is down is told of when it is needed. Close it.
func Open(config Config) (*Nodes, error) {
	if len(config.Nodes) == 0 {
		return nil, errors.New("the Redis has no nodes: name the host and port of each")
	}
	if config.Username == "" || config.Password.IsZero() {
		return nil, errors.New("the administrator of the Redis has no name or no password: give both")
	}
	if config.Timeout <= 0 {
		config.Timeout = DefaultTimeout
	}
	opened := &Nodes{}
	for i, address := range config.Nodes {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("the node %q of the Redis is no host and port: write it as redis-0.example.com:6379", address)
		}
		if slices.Contains(config.Nodes[:i], address) {
			return nil, fmt.Errorf("the node %s of the Redis is named twice: name it once", address)
		}
		opened.nodes = append(opened.nodes, newNode(address, config))
	}
	return opened, nil
}

// Close closes the connections.
func (n *Nodes) Close() error {
	var errs []error
	for _, node := range n.nodes {
		errs = append(errs, node.client.Close())
	}
	return errors.Join(errs...)
}

// each does something with every node, also when it has failed with others.
func (n *Nodes) each(do func(*node) error) error {
	var errs []error
	for _, node := range n.nodes {
		errs = append(errs, do(node))
	}
	return errors.Join(errs...)
}

// node is one server.
type node struct {
	address string
	config  Config
	client  *goredis.Client

	mu sync.Mutex
	// same are pairs of lists of rules for commands, ours and as the server describes it, that are known to mean the same.
	same map[[2]string]bool
	// saves reports that the node has saved its users to its aclfile.
	saves bool
}

func newNode(address string, config Config) *node {
	made := &node{address: address, config: config, same: map[[2]string]bool{}}
	options := made.options(config.Username, config.Password)
	options.PoolSize, options.MaxRetries, options.OnConnect = 2, 2, checkVersion
	made.client = goredis.NewClient(options)
	made.client.AddHook(guard{new(breaker.Breaker)})
	return made
}

// checkVersion asks a node that was just connected to for its version. Redis 6.0 tells it only to who names the protocol too: the one that is
// spoken already.
func checkVersion(ctx context.Context, connection *goredis.Conn) error {
	hello := goredis.NewSliceCmd(ctx, "HELLO", protocol)
	if err := connection.Process(ctx, hello); err != nil {
		return err
	}
	told := named(hello.Val())
	server, _ := told["server"].(string)
	version, _ := told["version"].(string)
	digits, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(digits); err != nil || major < oldestVersion {
		return oldNodeError{server, version}
	}
	return nil
}

// options are those of a client that logs in as a user and, if nothing else is said, tries nothing twice.
func (n *node) options(username string, password credential.Password) *goredis.Options {
	return &goredis.Options{
		Addr: n.address, Username: username, Password: password.Reveal(), TLSConfig: n.config.TLS,
		DialTimeout: n.config.Timeout, ReadTimeout: n.config.Timeout, WriteTimeout: n.config.Timeout, ContextTimeoutEnabled: true,
		Protocol: protocol, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, ClientName: "einmal", DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// account asks for a user: nil if the node says that it has none.
func (n *node) account(ctx context.Context, username string) (*account, error) {
	doing := "look for the user " + username
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	answer, err := n.client.Do(ctx, "ACL", "GETUSER", username).Slice()
	if errors.Is(err, goredis.Nil) {
		return nil, nil //nolint:nilnil // No user is an answer, and no error.
	}
	if err != nil {
		return nil, n.fault(doing, err)
	}
	found, err := parseAccount(answer)
	if err != nil {
		return nil, fmt.Errorf("redis node %s: %s: %w", n.address, doing, err)
	}
	return found, nil
}

// change sends commands in one transaction, with one that saves the users behind them: what is done is saved, also if we end in between.
func (n *node) change(ctx context.Context, doing string, commands ...[]any) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	answers, err := n.client.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, command := range append(slices.Clone(commands), []any{"ACL", "SAVE"}) {
			pipe.Do(ctx, command...)
		}
		return nil
	})
	for i, answer := range answers {
		if last := i == len(answers)-1; last && withoutFile(answer.Err()) {
			n.noteSaves(false)
			return nil
		}
		if failed := answer.Err(); failed != nil {
			return n.fault(doing, failed)
		}
	}
	return n.fault(doing, err)
}

// login tries to log in as a user.
func (n *node) login(ctx context.Context, username string, password credential.Password) (credential.State, error) {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	client := goredis.NewClient(n.options(username, password))
	defer func() { _ = client.Close() }()
	err := client.Ping(ctx).Err()
	switch {
	case err == nil, goredis.HasErrorPrefix(err, "NOPERM"):
		return credential.Accepted, nil // Who may not ping has logged in.
	case goredis.HasErrorPrefix(err, wrongPassword):
		return credential.Refused, nil
	default:
		return "", n.fault("log in as the user "+username, err)
	}
}
