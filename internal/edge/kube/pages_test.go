package kube_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// paged answers lists in three pages. The third has expired once.
type paged struct {
	client.Client

	asked   []string
	expired bool
}

// List answers with one page.
func (p *paged) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	p.asked = append(p.asked, fmt.Sprintf("%s %q %d", asked.Namespace, asked.Continue, asked.Limit))
	page := map[string]int{"": 1, "second": 2, "third": 3}[asked.Continue]
	if page == 3 && !p.expired {
		p.expired = true
		return apierrors.NewResourceExpired("too old")
	}
	list := into.(*unstructured.UnstructuredList)
	list.Items = []unstructured.Unstructured{{Object: object.Body{"n": page}}}
	list.SetContinue([]string{"second", "third", ""}[page-1])
	return nil
}

func TestObjectsAreListedInPages(t *testing.T) {
	api := &paged{}
	objects := kube.Objects{Client: api, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}
	var got []any
	err := objects.Pages(t.Context(), "a", func(page []object.Body) error {
		for _, one := range page {
			got = append(got, one["n"])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{1, 2, 1, 2, 3}, got); diff != "" {
		t.Error(diff)
	}
	want := []string{`a "" 500`, `a "second" 500`, `a "third" 500`, `a "" 500`, `a "second" 500`, `a "third" 500`}
	if diff := cmp.Diff(want, api.asked); diff != "" {
		t.Error(diff)
	}
}
