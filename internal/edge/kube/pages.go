package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// pageSize is the number of objects that one response of the API server may contain.
const pageSize = 500

// Pages lists the objects in a namespace, or in all namespaces if it is "", page by page. If the list expires between two pages it starts
// again, so that some objects occur twice.
func (o Objects) Pages(ctx context.Context, namespace string, use func([]object.Body) error) error {
	next := ""
	for {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(o.Kind.GroupVersion().WithKind(o.Kind.Kind + "List"))
		err := o.page(ctx, page, namespace, next)
		if apierrors.IsResourceExpired(err) && next != "" {
			next = ""
			continue
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", o.Kind.Kind, err)
		}
		bodies := make([]object.Body, len(page.Items))
		for i, item := range page.Items {
			bodies[i] = item.Object
		}
		if err := use(bodies); err != nil {
			return err
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

func (o Objects) page(ctx context.Context, into client.ObjectList, namespace, next string) error {
	return o.Client.List(ctx, into, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next))
}
