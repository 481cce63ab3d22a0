package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// Point is one thing that the processes of an operator ask of the world: the Nth request or effect of this name. Names
// are logical, so that the same point is found in another run.
type Point struct {
	What string
	N    int
}

// String is the name: patch widgets.test.example.com default/one status by resize #2.
func (p Point) String() string { return fmt.Sprintf("%s #%d", p.What, p.N) }

// parsePoint reads what String wrote.
func parsePoint(text string) (Point, error) {
	const mark = " #"
	at := strings.LastIndex(text, mark)
	if at < 0 {
		return Point{}, fmt.Errorf("%q: %w", text, errNoPoint)
	}
	n, err := strconv.Atoi(text[at+len(mark):])
	if err != nil || n < 1 {
		return Point{}, fmt.Errorf("%q: %w", text, errNoPoint)
	}
	return Point{What: text[:at], N: n}, nil
}

var errNoPoint = errors.New("this names no point: a point ends with its number, such as #1")

// The verbs of requests, as in the rules of RBAC, and apply for server-side apply.
const (
	verbGet    = "get"
	verbList   = "list"
	verbWatch  = "watch"
	verbCreate = "create"
	verbUpdate = "update"
	verbPatch  = "patch"
	verbApply  = "apply"
	verbDelete = "delete"
	// verbDeleteAll is the right that the deletion of a collection needs.
	verbDeleteAll = "deletecollection"
)

// byHandler stands before the name of the handler that asks.
const byHandler = " by "

// effectVerb begins the names of effects outside of the cluster.
const effectVerb = "effect"

// Request is a request to the API server, by its meaning.
type Request struct {
	// Verb is that of RBAC, or apply.
	Verb string
	// Resource is the plural name with its group: pods, widgets.test.example.com.
	Resource string
	// Object is namespace/name, or the name of a cluster-wide object.
	Object      string
	Subresource string
	// Handler is the one that asks; "" for the operator's own bookkeeping.
	Handler string
	// creates is set for a PUT of an object that does not exist.
	creates bool
}

// String names the request as Point.What does.
func (r Request) String() string {
	text := r.Verb + " " + r.Resource + " " + r.Object
	if r.Subresource != "" {
		text += " " + r.Subresource
	}
	if r.Handler != "" {
		text += byHandler + r.Handler
	}
	return text
}

// write reports whether the request changes something.
func (r Request) write() bool {
	return r.Verb != verbGet && r.Verb != verbList && r.Verb != verbWatch
}

// point reports whether the request is a point. Watches, and lists of the cache, are not: what goes wrong with them is the business
// of Events and StaleCache. Nor are events, and the leases of elections.
func (r Request) point() bool {
	switch r.Resource {
	case "events", "events.events.k8s.io":
		return false
	case "leases.coordination.k8s.io":
		return r.Handler != "" && r.Verb != verbWatch
	default:
		return r.Verb != verbWatch && (r.Verb != verbList || r.Handler != "")
	}
}

// ofHandler reports whether a handler asks for what a point names.
func ofHandler(what string) bool { return isEffect(what) || strings.Contains(what, byHandler) }

// isEffect reports whether a point is an effect outside of the cluster.
func isEffect(what string) bool { return strings.HasPrefix(what, effectVerb+" ") }

// requestOf reads the meaning of a request; it is false for discovery and the like.
func requestOf(r *http.Request) (Request, bool) {
	target := kube.TargetOf(r)
	if target.Resource == "" {
		return Request{}, false
	}
	if target.Verb == verbPatch && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
		target.Verb = verbApply
	}
	if target.Verb == verbCreate && target.Name == "" {
		target.Name = nameInBody(r)
	}
	return Request{
		Verb: target.Verb, Resource: target.Resource, Subresource: target.Subresource, Handler: invoke.Name(r.Context()),
		Object: strings.TrimPrefix(types.NamespacedName{Namespace: target.Namespace, Name: target.Name}.String(), "/"),
	}, true
}

// nameInBody is the name of an object that is to be created; "" when the server is to choose it.
func nameInBody(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	var object struct {
		Metadata struct{ Name string }
	}
	if err != nil || json.Unmarshal(text, &object) != nil {
		return ""
	}
	return object.Metadata.Name
}
