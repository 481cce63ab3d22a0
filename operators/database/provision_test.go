package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What passes by itself is retried, and is not in the status.
func TestOnlyRefusalsAreReported(t *testing.T) {
	kind := schema.GroupResource{Resource: "services"}
	quota, foreign := apierrors.NewForbidden(kind, "a", errors.New("exceeded quota")), errors.New("object exists and does not belong to this owner")
	passing := []error{
		&url.Error{Op: "Get", Err: errors.New("connection reset")}, context.Canceled, context.DeadlineExceeded, apierrors.NewConflict(kind, "a", errors.New("changed")),
		apierrors.NewServiceUnavailable("starting"), apierrors.NewTooManyRequests("later", 1), apierrors.NewInternalError(errors.New("etcd")),
		apierrors.NewServerTimeout(kind, "get", 1),
	}
	var all error
	for _, one := range passing {
		wrapped := fmt.Errorf("apply Service a: %w", one)
		if got := refusal(wrapped); got != nil {
			t.Errorf("%v is reported: %v", wrapped, got)
		}
		all = errors.Join(all, wrapped)
	}
	got := refusal(errors.Join(all, quota, foreign))
	if !errors.Is(got, quota) || !errors.Is(got, foreign) || errors.Is(got, context.Canceled) {
		t.Errorf("reported are %v", got)
	}
	if refusal(nil) != nil {
		t.Error("no error is reported")
	}
}
