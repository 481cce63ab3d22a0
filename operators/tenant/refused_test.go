package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// docs/operators/tenant.md, "Conditions and reasons": the API server answers 403 for a missing permission, and for what no Role changes.
func TestNotEachForbiddenRequestLacksAPermission(t *testing.T) {
	t.Parallel()
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "globex.web.db", errors.New(why))
	}
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "globex.web.db",
		errors.New("unable to create new content in namespace tenant-credentials because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	webhook := func(code int32, reason metav1.StatusReason) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "policy.example.com" denied the request: no`,
		}}
	}
	for _, test := range []struct {
		err    error
		class  class
		reason string
	}{
		{forbidden(`User "system:serviceaccount:a:b" cannot get resource "secrets" in API group "" in the namespace "c"`), blocked, "AdminLacksRights"},
		{forbidden("exceeded quota: small, requested: secrets=1, used: secrets=9, limited: secrets=9"), blocked, "QuotaExceeded"},
		{forbidden("failed quota: small: must specify secrets"), blocked, "QuotaExceeded"},
		{forbidden("insufficient quota to consume: secrets"), blocked, "QuotaExceeded"},
		{terminating, blocked, "NamespaceTerminating"},
		{webhook(http.StatusForbidden, metav1.StatusReasonForbidden), blocked, "AdmissionDenied"},
		{webhook(http.StatusBadRequest, ""), blocked, "AdmissionDenied"},
		{forbidden("ValidatingAdmissionPolicy 'labels' with binding 'all' denied request: no"), blocked, "AdmissionDenied"},
		{forbidden(`violates PodSecurity "restricted:latest": host namespaces`), blocked, "AdmissionDenied"},
		{forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), blocked, "AdminLacksRights"},
		{apierrors.NewTooManyRequests("slow down", 1), unknown, "Unreachable"},
		{errors.New(`admission webhook "x" denied the request`), unknown, "Unreachable"},
		{postgres.ErrInUse, waiting, "DatabaseInUse"},
		{postgres.ErrBusy, unknown, "Unreachable"},
	} {
		if how, reason := classify(fmt.Errorf("store: %w", test.err)); how != test.class || reason != test.reason {
			t.Errorf("%v: %d, %s, want %d, %s", test.err, how, reason, test.class, test.reason)
		}
	}
}
