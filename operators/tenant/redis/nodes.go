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

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 5 * time.Second

// oldestVersion is the first major version with rules for subcommands (release notes of Redis 7.0). Valkey started after it, with 7.2.
const oldestVersion = 7

// protocol is the version of the Redis protocol (RESP2).
const protocol = 2

// Config describes the nodes of a Redis and its administrator.
type Config struct {
	// Nodes lists the host and port of every node, including replicas: a replica that is missing here has no users when it becomes the
	// primary.
	Nodes []string
	// Username and Password are the credentials of the administrator on all nodes.
	Username string
	Password credential.Password
	// TLS is the TLS configuration; nil disables TLS.
	TLS *tls.Config
	// Timeout limits how long a node may take for each answer. The default is DefaultTimeout.
	Timeout time.Duration
}

// Nodes are all nodes of a Redis, each with a small connection pool. It is safe for concurrent use.
type Nodes struct {
	nodes []*node
}

// Open creates clients for all nodes and connects to none: if a node is down, later calls return the error. The caller must call Close.
func Open(config Config) (*Nodes, error) {
	if len(config.Nodes) == 0 {
		return nil, errors.New("no Redis nodes: set the host and port of each node")
	}
	if config.Username == "" || config.Password.IsZero() {
		return nil, errors.New("the Redis administrator has no username or no password: set both")
	}
	if config.Timeout <= 0 {
		config.Timeout = DefaultTimeout
	}
	opened := &Nodes{}
	for i, address := range config.Nodes {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("invalid Redis node %q: must be host:port, for example redis-0.example.com:6379", address)
		}
		if slices.Contains(config.Nodes[:i], address) {
			return nil, fmt.Errorf("duplicate Redis node %s: list it once", address)
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

// each calls a function for every node, even if it fails for some.
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
	saves   saves

	mu sync.Mutex
	// same are pairs of command rules, ours and the server's description, that allow the same commands.
	same map[[2]string]bool
}

func newNode(address string, config Config) *node {
	made := &node{address: address, config: config, same: map[[2]string]bool{}}
	options := made.options()
	options.PoolSize, options.MaxRetries = 2, 2
	made.client = goredis.NewClient(options)
	made.client.AddHook(guard{breaker.New()})
	return made
}

// checkVersion reads the version of a node after connecting. Redis 6.0 reports it only if HELLO includes the protocol version, so the
// current one is sent.
func checkVersion(ctx context.Context, connection *goredis.Conn) error {
	hello := goredis.NewSliceCmd(ctx, "HELLO", protocol)
	if err := connection.Process(ctx, hello); err != nil {
		return err
	}
	answer := named(hello.Val())
	server, _ := answer["server"].(string)
	version, _ := answer["version"].(string)
	digits, _, _ := strings.Cut(version, ".")
	if major, err := strconv.Atoi(digits); err != nil || major < oldestVersion {
		return oldNodeError{server, version}
	}
	return nil
}

// options returns the options of a client that uses one connection and does not retry.
func (n *node) options() *goredis.Options {
	return &goredis.Options{
		Addr: n.address, Username: n.config.Username, Password: n.config.Password.Reveal(), TLSConfig: n.config.TLS, OnConnect: checkVersion,
		DialTimeout: n.config.Timeout, ReadTimeout: n.config.Timeout, WriteTimeout: n.config.Timeout, ContextTimeoutEnabled: true,
		Protocol: protocol, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, ClientName: "einmal", DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// account reads a user. It returns nil if the node says that the user does not exist.
func (n *node) account(ctx context.Context, username string) (*account, error) {
	doing := "read user " + username
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	answer, err := n.client.Do(ctx, "ACL", "GETUSER", username).Slice()
	if errors.Is(err, goredis.Nil) {
		return nil, nil //nolint:nilnil // A missing user is a valid answer.
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
