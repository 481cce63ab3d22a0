package redis

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// The kinds of errors of a node. None of them means that a user does not exist.
var (
	// ErrUnreachable: the node did not answer, or not in time.
	ErrUnreachable = errors.New("no answer")
	// ErrDenied: the node rejects the login or a command of the administrator.
	ErrDenied = errors.New("not allowed for the administrator")
	// ErrNotReady: the node is loading, busy, or waiting for another node. The error passes.
	ErrNotReady = errors.New("not ready")
	// ErrUnsaved: the node made the change but could not write its ACL file. It loses the change in a restart.
	ErrUnsaved = errors.New("users cannot be saved")
	// ErrVersion: the node is older than the oldest supported version. Nothing was requested from it. The error stays until a person
	// upgrades it.
	ErrVersion = errors.New("version too old")
	// ErrOpen: the node accepts the user default without a password.
	ErrOpen = errors.New("the user default needs no password, so every client can read and write the keys of all tenants")
	// ErrFailed: the node answered with another error.
	ErrFailed = errors.New("command failed")
)

// oldNodeError is the ErrVersion of a node. It wraps no error, because the client would return the wrapped error instead.
type oldNodeError struct{ server, version string }

func (o oldNodeError) Error() string {
	return fmt.Sprintf("%v: %s %s, the oldest supported versions are Redis 7.0 and Valkey 7.2", ErrVersion, o.server, o.version)
}

func (oldNodeError) Is(target error) bool { return target == ErrVersion }

// ErrFull means that a user already has two passwords, so another cannot be added. Nothing was changed.
var ErrFull = errors.New("the user already has two passwords")

// fault returns an error of a node with its kind and remedy. It removes password hashes that the server may have repeated.
func (n *node) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrVersion) {
		return fmt.Errorf("redis node %s: %w; upgrade it, or use another node", n.address, err)
	}
	remedy, kind := classify(err)
	said := n.redact(err.Error())
	if errors.Is(kind, ErrUnreachable) && said == err.Error() {
		return fmt.Errorf("redis node %s: %s: %w: %w; %s", n.address, doing, kind, err, remedy)
	}
	return fmt.Errorf("redis node %s: %s: %w: %s; %s", n.address, doing, kind, said, remedy)
}

// shortestSecret is the length, in bytes, from which on a part of a secret is removed from a text.
const shortestSecret = 4

// redact removes what a server or a proxy may repeat of a command: password hashes, the arguments of an unknown command, and each part of the
// administrator's password.
func (n *node) redact(said string) string {
	said, _, _ = strings.Cut(said, ", with args beginning with:")
	said = regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(said, "***")
	secret, kept := n.config.Password.Reveal(), strings.Builder{}
	for said != "" {
		length := 0
		for end := min(shortestSecret, len(secret)); end <= len(said) && strings.Contains(secret, said[:end]); end++ {
			length = end
		}
		if length == 0 {
			kept.WriteByte(said[0])
			said = said[1:]
			continue
		}
		kept.WriteString("***")
		said = said[length:]
	}
	return kept.String()
}

// classify returns the kind of a client error and its remedy.
func classify(err error) (remedy string, kind error) {
	var answer goredis.Error
	if !errors.As(err, &answer) {
		return "start the node, allow network access to it, or remove it from the list of nodes", ErrUnreachable
	}
	code, text, _ := strings.Cut(answer.Error(), " ")
	switch {
	case code == "WRONGPASS", code == "NOAUTH", code == "NOPERM":
		return "check the administrator's password, and grant the rights in docs/operators/tenant.md", ErrDenied
	case code == "BUSY":
		return "wait until the script ends, or end it with SCRIPT KILL as the administrator", ErrNotReady
	case code == "LOADING", code == "MASTERDOWN", code == "CLUSTERDOWN", code == "TRYAGAIN", code == "OOM",
		strings.HasPrefix(text, "max number of clients"):
		return "wait, or check the log of the node", ErrNotReady
	case strings.HasPrefix(text, "There was an error trying to save the ACLs"):
		return "check the log of the node, and allow it to write the file in its setting aclfile", ErrUnsaved
	default:
		return "Redis 7.0 or Valkey 7.2, or later, is required", ErrFailed
	}
}

// withoutFile reports whether an error means that the node has no ACL file to save to.
func withoutFile(err error) bool {
	return err != nil && strings.Contains(err.Error(), "not configured to use an ACL file")
}
