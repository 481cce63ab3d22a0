package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/internal/core/selection"
)

// aggregatedDiscovery is the media type of aggregated discovery, in which one document lists all kinds. Kubernetes supports it since 1.30.
const aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// errNotAggregated means that the API server does not support aggregated discovery.
var errNotAggregated = errors.New("the API server does not support aggregated discovery v2, which Kubernetes has since 1.30")

// DiscoveryCache reads what an API server serves. Repeated reads cost almost nothing while nothing changes. It is not safe for concurrent use.
type DiscoveryCache struct {
	Discovery discovery.DiscoveryInterface

	core, groups document
}

// document is one of the two discovery documents, with the ETag that shows whether it has changed.
type document struct {
	tag     string
	served  []selection.Resource
	unknown []string
}

// Read returns the served resources. The versions of a group are in the API server's order of preference. If the server that provides a
// group version cannot be reached, Read returns the resources that it last had and names the group version in unknown.
func (c *DiscoveryCache) Read(ctx context.Context) (served []selection.Resource, unknown []string, err error) {
	for _, part := range []struct {
		path string
		last *document
	}{{"/api", &c.core}, {"/apis", &c.groups}} {
		if err := c.read(ctx, part.path, part.last); err != nil {
			return nil, nil, fmt.Errorf("discover API resources: %w", err)
		}
		served, unknown = append(served, part.last.served...), append(unknown, part.last.unknown...)
	}
	return served, unknown, nil
}

func (c *DiscoveryCache) read(ctx context.Context, path string, last *document) error {
	asked, err := c.ask(ctx, path, last.tag)
	if err != nil {
		return err
	}
	defer func() { _ = asked.Body.Close() }()
	text, err := io.ReadAll(asked.Body)
	switch {
	case err != nil:
		return err
	case asked.StatusCode == http.StatusNotModified:
		return nil
	case asked.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", path, asked.Status)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return errNotAggregated
	}
	*last = documentOf(list, last.served)
	last.tag = asked.Header.Get("ETag")
	return nil
}

// ask sends the request. The discovery client does not return the ETag of the response.
func (c *DiscoveryCache) ask(ctx context.Context, path, tag string) (*http.Response, error) {
	through, is := c.Discovery.RESTClient().(*rest.RESTClient)
	if !is {
		return nil, fmt.Errorf("unsupported discovery client %T", c.Discovery.RESTClient())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, through.Get().AbsPath(path).URL().String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", aggregatedDiscovery)
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	client := through.Client
	if client == nil {
		client = http.DefaultClient
	}
	return client.Do(request)
}

func documentOf(list apidiscoveryv2.APIGroupDiscoveryList, before []selection.Resource) document {
	var made document
	for _, group := range list.Items {
		for _, version := range group.Versions {
			found := resourcesOf(group.Name, version)
			if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				name := selection.Resource{Group: group.Name, Version: version.Version}.APIVersion()
				made.unknown = append(made.unknown, name)
				if len(found) == 0 {
					found = slices.DeleteFunc(slices.Clone(before), func(r selection.Resource) bool { return r.APIVersion() != name })
				}
			}
			made.served = append(made.served, found...)
		}
	}
	return made
}

func resourcesOf(group string, version apidiscoveryv2.APIVersionDiscovery) []selection.Resource {
	var all []selection.Resource
	for _, r := range version.Resources {
		if r.ResponseKind == nil || r.ResponseKind.Kind == "" {
			continue // This resource has only subresources.
		}
		all = append(all, selection.Resource{
			Group: group, Version: version.Version, Kind: r.ResponseKind.Kind, Plural: r.Resource, Singular: r.SingularResource,
			ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.Verbs,
			Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
		})
	}
	return all
}
