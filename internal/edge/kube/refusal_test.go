package kube_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// refusal is an error, and what it counts as.
type refusal struct {
	err                              error
	denied, lacksPermission, refused bool
}

// TestDenialsOnARealControlPlane in test/cluster keeps the texts of a real API server.
func TestWhichRefusalsAreDenials(t *testing.T) {
	t.Parallel()
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	forbidden := func(why string) error { return apierrors.NewForbidden(widgets, "one", errors.New(why)) }
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
	}
	const policy = `widgets.example.com "one" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: User "x" cannot have this`
	invalid := func(value string) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "one", field.ErrorList{field.Invalid(field.NewPath("spec"), value, "no")})
	}
	for _, test := range []refusal{
		{answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, policy), true, false, true},
		{answer(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, policy), true, false, true},
		{answer(http.StatusConflict, metav1.StatusReasonConflict, policy), true, false, true},
		{answer(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, policy), true, false, true},
		{answer(http.StatusForbidden, metav1.StatusReasonForbidden, policy), true, false, true},
		{answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, `admission webhook "a.b" denied the request without explanation`), true, false, true},
		{answer(http.StatusNotFound, metav1.StatusReasonNotFound, `admission webhook "a.b" denied the request: x`), true, false, true},
		{forbidden("exceeded quota: small"), true, false, true},
		{forbidden(`violates PodSecurity "restricted:latest": privileged`), true, false, true},
		{forbidden("unable to create new content in namespace x because it is being terminated"), true, false, true},
		{forbidden(`User "op" cannot patch resource "widgets" in API group "example.com" in the namespace "x"`), false, true, false},
		{answer(http.StatusForbidden, metav1.StatusReasonForbidden, `forbidden: User "system:anonymous" cannot get path "/x"`), false, true, false},
		{forbidden("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"), false, true, false},
		{forbidden("cannot set an ownerRef on a resource you can't delete: , <nil>"), false, true, false},
		{forbidden(`user "op" (groups=["a"]) is attempting to grant RBAC permissions not currently held: x`), false, true, false},
		{apierrors.NewUnauthorized("Unauthorized"), false, false, false},
		{apierrors.NewConflict(widgets, "one", errors.New("it has changed")), false, false, false},
		{invalid(`admission webhook "a.b" denied the request`), false, false, false},
		{invalid(`"one" is forbidden: ValidatingAdmissionPolicy 'p' denied request: x`), false, false, false},
		{apierrors.NewInternalError(errors.New(`failed calling webhook "a.b": timeout`)), false, false, false},
		{apierrors.NewRequestEntityTooLargeError("limit is 3145728"), false, false, true},
		{errors.New(`admission webhook "a.b" denied the request`), false, false, false},
		{nil, false, false, false},
	} {
		checkRefusal(t, test)
	}
}

func checkRefusal(t *testing.T, want refusal) {
	t.Helper()
	err := want.err
	if err != nil {
		err = fmt.Errorf("patch: %w", err)
	}
	if got := kube.Denied(err); got != want.denied {
		t.Errorf("%v: denied %t, want %t", err, got, want.denied)
	}
	if got := kube.LacksPermission(err); got != want.lacksPermission {
		t.Errorf("%v: lacks a permission %t, want %t", err, got, want.lacksPermission)
	}
	if got := kube.Refused(err); got != want.refused {
		t.Errorf("%v: refused %t, want %t", err, got, want.refused)
	}
	if want.denied && kube.TooLarge(err) {
		t.Errorf("%v: counts as too large", err)
	}
	if _, known := kube.ProblemOf(err); want.denied && known || want.lacksPermission && !known {
		t.Errorf("%v: a known problem %t", err, known)
	}
}
