package kube

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// target describes a request: its verb and its object.
type target struct {
	verb, resource, subresource, namespace, name string
	// path is set if the request is not about a resource.
	path string
	// longRunning requests have no time limit.
	longRunning, watch, bookmarks, write bool
}

// targetOf interprets the path of a request as an API server does.
func targetOf(request *http.Request) target {
	query := request.URL.Query()
	t := target{path: request.URL.Path, verb: strings.ToLower(request.Method), longRunning: request.Header.Get("Upgrade") != ""}
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
		t.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	t.resource, t.name, t.subresource = parts[0]+group, parts[1], parts[2]
	t.path = ""
	t.watch = request.Method == http.MethodGet && t.name == "" && flag(query, "watch")
	t.bookmarks = flag(query, "allowWatchBookmarks")
	t.longRunning = t.longRunning || slices.Contains([]string{"attach", "exec", "log", "portforward", "proxy"}, t.subresource)
	t.verb = t.apiVerb()
	return t
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
func (t target) apiVerb() string {
	switch {
	case t.watch:
		return "watch"
	case t.verb == "get" && t.name == "":
		return "list"
	case t.verb == "post":
		return "create"
	case t.verb == "put":
		return "update"
	default:
		return t.verb
	}
}

// String returns the verb, the resource and the object, as in "patch widgets.example.com/status default/one".
func (t target) String() string {
	if t.path != "" {
		return t.verb + " " + t.path
	}
	text := t.verb + " " + t.resource
	if t.subresource != "" {
		text += "/" + t.subresource
	}
	switch {
	case t.namespace != "" && t.name == "":
		return text + " in namespace " + t.namespace
	case t.namespace != "":
		return text + " " + t.namespace + "/" + t.name
	case t.name != "":
		return text + " " + t.name
	}
	return text
}
