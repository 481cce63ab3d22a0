package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// request is a request about objects of a kind.
type request struct {
	*http.Request

	kind                         *kind.Kind
	namespace, name, subresource string
	query                        url.Values
	form                         form
}

func (r *request) key() store.Key {
	return store.Key{Resource: r.kind.Resource(), Namespace: r.namespace, Name: r.name}
}

func (r *request) dryRun() bool { return r.query.Get("dryRun") == "All" }

// manager is the field manager of the request: the one it names, or the first part of the user agent.
func (r *request) manager() string {
	if named := r.query.Get("fieldManager"); named != "" {
		return named
	}
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	return agent[:min(len(agent), 128)]
}

func emptyResource() schema.GroupResource { return schema.GroupResource{} }

// errNoPath is the answer to a path that nothing is served at.
func errNoPath() error {
	return &apierrors.StatusError{ErrStatus: apierrors.NewGenericServerResponse(http.StatusNotFound, "", emptyResource(), "", "", 0, true).ErrStatus}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		s.serveObjects(w, r, schema.GroupVersion{Version: parts[1]}, parts[2:]) //nolint:contextcheck // The request has it.
	case len(parts) >= 4 && parts[0] == "apis":
		s.serveObjects(w, r, schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]) //nolint:contextcheck // The request has it.
	case r.Method != http.MethodGet:
		refuse(w, apierrors.NewMethodNotSupported(emptyResource(), r.Method))
	default:
		s.discover(w, r, parts)
	}
}

// serveObjects routes what comes after the group and version of a path.
func (s *Server) serveObjects(w http.ResponseWriter, r *http.Request, version schema.GroupVersion, parts []string) {
	q := &request{Request: r, query: r.URL.Query()}
	if parts[0] == "namespaces" && len(parts) > 2 && (version.Group != "" || len(parts) != 3 || parts[2] != kind.Status) {
		q.namespace, parts = parts[1], parts[2:]
	}
	q.kind = s.kinds.find(version, parts[0])
	if len(parts) > 1 {
		q.name = parts[1]
	}
	if len(parts) > 2 {
		q.subresource = parts[2]
	}
	if err := unserved(q.kind, q.subresource); err != nil {
		refuse(w, err)
		return
	}
	known := q.kind != nil && len(parts) <= 3 && (q.subresource == "" || q.kind.Serves(q.subresource))
	if !known || q.namespace != "" && !q.kind.Namespaced || q.namespace == "" && q.kind.Namespaced && q.name != "" {
		refuse(w, errNoPath())
		return
	}
	var err error
	if q.form, err = formOf(r); err == nil {
		err = s.dispatch(w, q)
	}
	if err != nil {
		refuse(w, err)
	}
}

// dispatch does what the method asks for.
func (s *Server) dispatch(w http.ResponseWriter, q *request) error {
	switch {
	case q.name == "" && isWatch(q.Request):
		return s.watch(w, q)
	case q.name == "" && q.Method == http.MethodGet:
		return s.list(w, q)
	case q.Method == http.MethodGet:
		return s.get(w, q)
	case q.name == "" && q.Method == http.MethodPost && (q.namespace != "" || !q.kind.Namespaced):
		return s.post(w, q)
	case q.name == "" && q.Method == http.MethodDelete && (q.namespace != "" || !q.kind.Namespaced):
		return s.deleteCollection(w, q)
	case q.name == "":
	case q.Method == http.MethodPut:
		return s.put(w, q)
	case q.Method == http.MethodPatch:
		return s.patch(w, q)
	case q.Method == http.MethodDelete && q.subresource == "":
		return s.delete(w, q)
	}
	if q.kind.Custom() {
		return apierrors.NewMethodNotSupported(q.kind.GroupResource(), strings.ToLower(q.Method))
	}
	return apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, "", emptyResource(), "", "", 0, true)
}
