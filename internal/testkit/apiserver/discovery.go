package apiserver

import (
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
)

const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discover tells what is served.
func (s *Server) discover(w http.ResponseWriter, r *http.Request, parts []string) {
	switch {
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis"):
		s.discoverRoot(w, r, parts[0])
	case len(parts) == 2 && parts[0] == "api":
		s.discoverVersion(w, schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		s.discoverVersion(w, schema.GroupVersion{Group: parts[1], Version: parts[2]})
	case len(parts) == 1 && parts[0] == "version":
		respond(w, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"})
	case len(parts) == 1 && slices.Contains([]string{"healthz", "livez", "readyz"}, parts[0]):
		_, _ = w.Write([]byte("ok"))
	case len(parts) >= 2 && parts[0] == "openapi" && parts[1] == "v3":
		s.openAPI(w, parts[2:])
	default:
		refuse(w, errNoPath())
	}
}

func (s *Server) discoverRoot(w http.ResponseWriter, r *http.Request, root string) {
	if !wantsAggregated(r) {
		refuse(w, errNotAccepted(aggregated))
		return
	}
	tag := s.kinds.tag()
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	respondAs(w, http.StatusOK, aggregated, s.aggregate(root))
}

func wantsAggregated(r *http.Request) bool {
	for clause := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		_, parameters, err := mime.ParseMediaType(clause)
		if err == nil && parameters["as"] == "APIGroupDiscoveryList" && parameters["v"] == "v2" {
			return true
		}
	}
	return false
}

func verbs(k *kind.Kind) []string {
	if k.Custom() {
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

func statusVerbs() []string { return []string{"get", "patch", "update"} }

func (s *Server) discoverVersion(w http.ResponseWriter, asked schema.GroupVersion) {
	kinds := s.kinds.version(asked)
	if len(kinds) == 0 {
		refuse(w, errNoPath())
		return
	}
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: asked.String(),
	}
	for _, k := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Plural, SingularName: k.Singular, Namespaced: k.Namespaced, Kind: k.Kind, Verbs: verbs(k),
			ShortNames: k.ShortNames, Categories: k.Categories,
		})
		if k.HasStatus {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Plural + "/" + kind.Status, Namespaced: k.Namespaced, Kind: k.Kind, Verbs: statusVerbs(),
			})
		}
	}
	respond(w, http.StatusOK, list)
}

// aggregate describes everything in one document.
func (s *Server) aggregate(root string) apidiscoveryv2.APIGroupDiscoveryList {
	list := apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	groups := s.kinds.versions()
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if (name == "") != (root == "api") {
			continue
		}
		described := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, served := range groups[name] {
			described.Versions = append(described.Versions, s.aggregateVersion(schema.GroupVersion{Group: name, Version: served}))
		}
		list.Items = append(list.Items, described)
	}
	return list
}

func (s *Server) aggregateVersion(served schema.GroupVersion) apidiscoveryv2.APIVersionDiscovery {
	described := apidiscoveryv2.APIVersionDiscovery{Version: served.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, k := range s.kinds.version(served) {
		kindOf := &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
		resource := apidiscoveryv2.APIResourceDiscovery{
			Resource: k.Plural, ResponseKind: kindOf, Scope: apidiscoveryv2.ScopeCluster, SingularResource: k.Singular,
			Verbs: verbs(k), ShortNames: k.ShortNames, Categories: k.Categories,
		}
		if k.Namespaced {
			resource.Scope = apidiscoveryv2.ScopeNamespace
		}
		if k.HasStatus {
			resource.Subresources = []apidiscoveryv2.APISubresourceDiscovery{
				{Subresource: kind.Status, ResponseKind: kindOf, Verbs: statusVerbs()},
			}
		}
		described.Resources = append(described.Resources, resource)
	}
	return described
}

// openAPI publishes the schemas of custom kinds, one document for each group and version.
func (s *Server) openAPI(w http.ResponseWriter, parts []string) {
	if len(parts) == 0 {
		paths := map[string]any{}
		for _, k := range s.kinds.all() {
			if document, found := s.document(k.GroupVersion()); found {
				path := "apis/" + k.GroupVersion().String()
				paths[path] = map[string]any{"serverRelativeURL": "/openapi/v3/" + path + "?hash=" + document.Hash}
			}
		}
		respond(w, http.StatusOK, map[string]any{"paths": paths})
		return
	}
	if len(parts) == 3 && parts[0] == "apis" {
		if document, found := s.document(schema.GroupVersion{Group: parts[1], Version: parts[2]}); found {
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			_, _ = w.Write(document.Text) // The client may be gone.
			return
		}
	}
	refuse(w, errNoPath())
}

// document is what is published of a group and version; built-in kinds are not.
func (s *Server) document(of schema.GroupVersion) (kind.Document, bool) {
	kinds := s.kinds.version(of)
	if !slices.ContainsFunc(kinds, (*kind.Kind).Published) {
		return kind.Document{}, false
	}
	document, err := s.definitions.compiler.Document(kinds)
	return document, err == nil
}
