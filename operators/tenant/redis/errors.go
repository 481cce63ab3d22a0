package redis

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// Why a node did not do what it was asked. None of these says anything of its users.
var (
	// ErrUnreachable: the node did not answer, or not in time.
	ErrUnreachable = errors.New("it does not answer")
	// ErrDenied: the node does not let the administrator in, or do that.
	ErrDenied = errors.New("it denies that to the administrator")
	// ErrNotReady: the node is loading, busy, or waits for another. It will be ready.
	ErrNotReady = errors.New("it is not ready")
	// ErrUnsaved: the node did what it was asked, and could not write its file of ACLs. When it starts again, it has forgotten it.
	ErrUnsaved = errors.New("it cannot save its users")
	// ErrVersion: the node is older than the oldest that is supported. Nothing was asked of it; it stays until a person has upgraded it.
	ErrVersion = errors.New("it is too old")
	// ErrOpen: the node lets everyone in as the user default, without a password.
	ErrOpen = errors.New("its user default needs no password, so everyone reads and writes the keys of all tenants")
	// ErrFailed: the node answered with another error.
	ErrFailed = errors.New("it failed")
)

// oldNodeError is ErrVersion of a node. It wraps nothing, since the client gives what an error wraps in place of it.
type oldNodeError struct{ server, version string }

func (o oldNodeError) Error() string {
	return fmt.Sprintf("%v: it is %s %s, and the oldest that are supported are Redis 7.0 and Valkey 7.2", ErrVersion, o.server, o.version)
}

func (oldNodeError) Is(target error) bool { return target == ErrVersion }

// ErrFull tells that a user has two passwords already, so that another has no room. Nothing was changed.
var ErrFull = errors.New("the user has two passwords already")

// wrongPassword is the only word of a server that says that a password is wrong.
const wrongPassword = "WRONGPASS"

// fault is an error of a node: what it is, what to do, and what the server said, without the hashes of passwords that it may have repeated.
func (n *node) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrVersion) {
		return fmt.Errorf("redis node %s: %w: upgrade it, or name another node", n.address, err)
	}
	remedy, kind := classify(err)
	if errors.Is(kind, ErrUnreachable) {
		return fmt.Errorf("redis node %s: %s: %w: %w; %s", n.address, doing, kind, err, remedy)
	}
	said := regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(err.Error(), "***")
	return fmt.Errorf("redis node %s: %s: %w: %s; %s", n.address, doing, kind, said, remedy)
}

// classify tells what an error of a client is, and its remedy.
func classify(err error) (remedy string, kind error) {
	var told goredis.Error
	if !errors.As(err, &told) {
		return "start it, open the network to it, or take it out of the nodes", ErrUnreachable
	}
	code, text, _ := strings.Cut(told.Error(), " ")
	switch {
	case code == wrongPassword, code == "NOAUTH", code == "NOPERM":
		return "give the administrator the right password and the rights that the documentation of the operator lists", ErrDenied
	case code == "BUSY":
		return "wait until the script has ended, or end it with SCRIPT KILL, which the administrator may run", ErrNotReady
	case code == "LOADING", code == "MASTERDOWN", code == "CLUSTERDOWN", code == "TRYAGAIN", code == "OOM",
		strings.HasPrefix(text, "max number of clients"):
		return "wait, or look into its log", ErrNotReady
	case strings.HasPrefix(text, "There was an error trying to save the ACLs"):
		return "look into its log, and let it write the file that its setting aclfile names", ErrUnsaved
	default:
		return "it needs to be Redis 7.0 or Valkey 7.2, or later", ErrFailed
	}
}

// withoutFile tells that a node has no file of ACLs, so that there is nothing to save to.
func withoutFile(err error) bool {
	return err != nil && strings.Contains(err.Error(), "not configured to use an ACL file")
}
