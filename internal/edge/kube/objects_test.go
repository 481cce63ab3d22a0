package kube_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// A write that makes the object too large is rejected in one of three ways, all of which are about the content. A field that is too long
// for the schema is not one of them.
func TestRefusalsForSize(t *testing.T) {
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Widget"}, "one", field.ErrorList{field.TooLong(path, "", 1)})
	}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"request":     {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"annotations": {fmt.Errorf("patch: %w: %w", kube.ErrConflict, invalid(field.NewPath("metadata", "annotations"))), true},
		"etcd":        {apierrors.NewInternalError(errors.New("etcdserver: request is too large")), true},
		"field":       {invalid(field.NewPath("spec", "color")), false},
		"internal":    {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), false},
		"connection":  {errors.New("connection refused"), false},
		"none":        {nil, false},
	} {
		if got := kube.TooLarge(test.err); got != test.want {
			t.Errorf("%s: too large: %t, want %t", name, got, test.want)
		}
		if test.want && !kube.Refused(test.err) {
			t.Errorf("%s: not refused", name)
		}
	}
}
