package kube

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// How the texts of refusals begin in the API server (k8s.io/apiserver/pkg/admission and k8s.io/kubernetes, 1.36). The beginning counts, since the
// rest can quote values of users.
const (
	// webhookText is that of an admission webhook, which chooses the status code itself.
	webhookText = `^admission webhook "[^"]*" denied the request`
	// forbiddenStart is that of all other refusals before an object is stored, also of a ValidatingAdmissionPolicy, which chooses the status code too.
	forbiddenStart = `^(\S+ ("[^"]*" )?is )?forbidden: `
	// rightText is what follows for a missing permission: of the authorizer, of the admission plugin OwnerReferencesPermissionEnforcement, and
	// of the check that an account gives no permissions that it lacks.
	rightText = `(User "[^"]*" cannot |cannot set an ownerRef |cannot set blockOwnerDeletion |user "[^"]*" \(groups=.*\) is attempting to grant |must have cluster-admin )`
)

// Refusal returns the API server's own text on why it rejected a request.
func Refusal(err error) string {
	if status, is := statusOf(err); is {
		return strings.TrimSpace(status.Message)
	}
	return err.Error()
}

// Refused reports whether repeating the write with the same content on the same object is useless. A missing permission does not count, since
// it can be granted at any time.
func Refused(err error) bool {
	return Denied(err) || errors.Is(err, ErrConflict) || apierrors.IsBadRequest(err) || TooLarge(err)
}

// Denied reports whether an admission webhook, an admission policy, a quota or another admission plugin refused the request, with any status code.
// They can decide differently another time, so a denial is never final, and says nothing of the size of the content.
func Denied(err error) bool {
	status, is := statusOf(err)
	return is && (matches(webhookText, status.Message) ||
		(status.Reason == metav1.StatusReasonForbidden || matches(forbiddenStart, status.Message)) && !matches(forbiddenStart+rightText, status.Message))
}

// LacksPermission reports whether the API server refused the request because the account lacks a permission.
func LacksPermission(err error) bool { return apierrors.IsForbidden(err) && !Denied(err) }

// conflicted reports whether another client has changed or created the object meanwhile. An admission webhook can answer with the same code.
func conflicted(err error) bool { return apierrors.IsConflict(err) && !Denied(err) }

// TooLarge reports whether the API server rejected a write because of its size: that of the request, of the annotations (256 KiB), or of
// the whole object in etcd, for which the API server responds with an internal error.
func TooLarge(err error) bool {
	status, is := statusOf(err)
	switch {
	case !is || Denied(err):
		return false
	case apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(status.Message, "etcdserver: request is too large"):
		return true
	}
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseType(field.ErrorTypeTooLong) && cause.Field == "metadata.annotations"
	})
}

// statusOf returns what the API server answered. It returns false for an error that does not come from the API server.
func statusOf(err error) (metav1.Status, bool) {
	var answer apierrors.APIStatus
	if err == nil || !errors.As(err, &answer) {
		return metav1.Status{}, false
	}
	return answer.Status(), true
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }
