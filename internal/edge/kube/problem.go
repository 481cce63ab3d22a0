package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reportAgain is the minimum time between two reports of the same problem.
const reportAgain = time.Minute

// Problem explains why a request to the API server failed.
type Problem struct {
	// Message is constant for one class of problems.
	Message string
	// Remedy says what to do about it.
	Remedy string
	// User, Rule and Scope describe the missing permission and the user who needs it. They are "" for other problems.
	User, Rule, Scope string
}

// ProblemOf classifies an error. The second result is false if the error belongs to no known class.
func ProblemOf(err error) (problem Problem, ok bool) {
	_, disconnected := errors.AsType[net.Error](err)
	_, restored := errors.AsType[*RestoredError](err)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return Problem{}, false
	case Denied(err):
		return Problem{}, false
	case restored:
		return Problem{
			Message: "the API server has older data than before, as after a restore of its etcd: listing everything again",
			Remedy:  "read docs/concepts/after-a-restore.md: what was made outside of the cluster since the copy must be compared",
		}, true
	case apierrors.IsUnauthorized(err):
		return Problem{
			Message: "the API server rejects the credentials (401 Unauthorized), will retry",
			Remedy:  "renew the token or certificate of the account, or choose another one with --kubeconfig and --context",
		}, true
	case apierrors.IsForbidden(err):
		return forbidden(err), true
	case disconnected || errors.Is(err, io.EOF):
		return Problem{
			Message: "cannot connect to the API server, will retry",
			Remedy:  "check that the server runs, and that --kubeconfig and --context name the right one",
		}, true
	default:
		return Problem{}, false
	}
}

// forbiddenText matches the refusals of the Kubernetes authorizer.
const forbiddenText = `User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)" (in the namespace "[^"]*"|at the cluster scope)`

func forbidden(err error) Problem {
	found := Problem{
		Message: "forbidden: the account lacks permissions that the operator needs, will retry",
		Remedy:  "grant the permissions that the rbac command prints, with kubectl apply -f -",
	}
	if part := regexp.MustCompile(forbiddenText).FindStringSubmatch(err.Error()); part != nil {
		found.User, found.Scope = part[1], part[5]
		found.Rule = fmt.Sprintf(`{apiGroups: [%q], resources: [%q], verbs: [%q]}`, part[4], part[3], part[2])
	}
	return found
}

// Attributes returns the log attributes of a problem.
func (p Problem) Attributes(err error) []any {
	all := []any{"error", err}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Message != "" {
		all = []any{"error", status.ErrStatus.Message} // Leaves out the Go types that a cache adds.
	}
	if p.Rule != "" {
		all = append(all, "missingRule", p.Rule, "scope", p.Scope, "user", p.User)
	}
	return append(all, "remedy", p.Remedy)
}

// ProblemLog logs problems with the API server. A lasting problem is logged at most once a minute.
type ProblemLog struct {
	mu   sync.Mutex
	last map[Problem]time.Time
}

// Report logs the problem behind an error. If the error belongs to no known class, it logs nothing and returns false.
func (l *ProblemLog) Report(log *slog.Logger, err error) bool {
	problem, ok := ProblemOf(err)
	if !ok || l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, before := l.last[problem]; before && time.Since(last) < reportAgain {
		return true
	}
	if l.last == nil {
		l.last = map[Problem]time.Time{}
	}
	l.last[problem] = time.Now()
	log.Warn(problem.Message, problem.Attributes(err)...) //nolint:sloglint // The message is constant for each class.
	return true
}
