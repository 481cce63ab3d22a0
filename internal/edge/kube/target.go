package kube

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Target describes a request to an API server: its verb, as in the rules of RBAC, and its object.
type Target struct {
	// Resource is the plural name with its group, as in widgets.example.com. It is empty if the request is not about a resource.
	Verb, Resource, Subresource, Namespace, Name string
	// path is set if the request is not about a resource.
	path string
	// longRunning requests have no time limit.
	longRunning, watch, bookmarks, write bool
}

// TargetOf interprets the path of a request as an API server does.
func TargetOf(request *http.Request) Target {
	query := request.URL.Query()
	t := Target{path: request.URL.Path, Verb: strings.ToLower(request.Method), longRunning: request.Header.Get("Upgrade") != ""}
	t.write = request.Method != http.MethodGet && request.Method != http.MethodHead
	group, parts := resourcePart(request.URL.Path)
	if len(parts) == 0 {
		return t
	}
	if parts[0] == "watch" || parts[0] == "proxy" {
		t.longRunning = true // The deprecated form with the verb in the path.
		return t
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		t.Namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	t.Resource, t.Name, t.Subresource = parts[0]+group, parts[1], parts[2]
	t.path = ""
	t.watch = request.Method == http.MethodGet && t.Name == "" && flag(query, "watch")
	t.bookmarks = flag(query, "allowWatchBookmarks")
	t.longRunning = t.longRunning || slices.Contains([]string{"attach", "exec", "log", "portforward", "proxy"}, t.Subresource)
	t.Verb = t.apiVerb()
	t.write = t.write && !t.review()
	return t
}

// review reports whether the request asks who a client is or what it may do. It creates an object that the API server does not store.
func (t Target) review() bool {
	return strings.HasSuffix(t.Resource, "reviews.authentication.k8s.io") ||
		strings.HasSuffix(t.Resource, "reviews.authorization.k8s.io")
}

// resourcePart returns the group of a path, preceded by a dot, and everything after the version. The path of an API server behind a proxy
// can have a prefix such as /k8s/clusters/one.
func resourcePart(path string) (group string, rest []string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range parts {
		switch following := parts[i+1:]; {
		case part == "api" && len(following) > 0 && following[0] == "v1":
			return "", following[1:]
		case part == "apis" && len(following) > 1:
			return "." + following[0], following[2:]
		}
	}
	return "", nil
}

// flag interprets a query parameter as an API server does.
func flag(query url.Values, name string) bool {
	value := strings.ToLower(query.Get(name))
	return query.Has(name) && value != "false" && value != "0"
}

// apiVerb returns the Kubernetes verb of the request.
func (t Target) apiVerb() string {
	switch {
	case t.watch:
		return "watch"
	case t.Verb == "get" && t.Name == "":
		return "list"
	case t.Verb == "post":
		return "create"
	case t.Verb == "put":
		return "update"
	case t.Verb == "delete" && t.Name == "":
		return "deletecollection"
	default:
		return t.Verb
	}
}

// String returns the verb, the resource and the object, as in "patch widgets.example.com/status default/one".
func (t Target) String() string {
	if t.path != "" {
		return t.Verb + " " + t.path
	}
	text := t.Verb + " " + t.Resource
	if t.Subresource != "" {
		text += "/" + t.Subresource
	}
	switch {
	case t.Namespace != "" && t.Name == "":
		return text + " in namespace " + t.Namespace
	case t.Namespace != "":
		return text + " " + t.Namespace + "/" + t.Name
	case t.Name != "":
		return text + " " + t.Name
	}
	return text
}
