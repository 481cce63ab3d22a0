package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answer is what the API server answers in place of carrying out the request.
func (e *answeredError) answer(r *http.Request, asked Request) *http.Response {
	switch e.with {
	case Forbidden:
		return forbidden(r, asked)
	case NotServed:
		return notServed(r)
	case Throttled:
		return throttled(r)
	case DeniedByWebhook:
		return refusedAs(r, asked, http.StatusForbidden, metav1.StatusReasonForbidden,
			`admission webhook "policy.example.com" denied the request: not now`)
	case OverQuota:
		return refusedAs(r, asked, http.StatusForbidden, metav1.StatusReasonForbidden,
			fmt.Sprintf("%s %q is forbidden: exceeded quota: team, requested: count/%s=1, used: count/%[1]s=9, limited: count/%[1]s=9", asked.Resource, asked.Object, asked.Resource))
	case Conflict:
		return refusedAs(r, asked, http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf(
			"Operation cannot be fulfilled on %s %q: the object has been modified; please apply your changes to the latest version and try again", asked.Resource, asked.Object))
	default:
		return unavailable(r)
	}
}

// overloaded is the answer of an API server that fails.
func overloaded(r *http.Request) *http.Response {
	return failure(r, metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "overloaded"})
}

// unavailable is the answer of an API server, or of a load balancer before it, that has too much to do.
func unavailable(r *http.Request) *http.Response {
	return failure(r, metav1.Status{
		Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: "the server is currently unable to handle the request",
	})
}

// throttled is the answer of API Priority and Fairness when a client sends too much. client-go sends the request again after the pause.
func throttled(r *http.Request) *http.Response {
	answer := failure(r, metav1.Status{
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "too many requests, please try again later",
	})
	answer.Header.Set("Retry-After", fmt.Sprint(int(throttledFor.Seconds())))
	return answer
}

// refusedAs is the refusal of one object.
func refusedAs(r *http.Request, asked Request, code int32, reason metav1.StatusReason, message string) *http.Response {
	resource, group, _ := strings.Cut(asked.Resource, ".")
	_, name, namespaced := strings.Cut(asked.Object, "/")
	if !namespaced {
		name = asked.Object
	}
	return failure(r, metav1.Status{
		Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{Group: group, Kind: resource, Name: name},
	})
}

// forbidden is the answer of an API server to a client without the permission. It begins as that of the Kubernetes authorizer.
func forbidden(r *http.Request, asked Request) *http.Response {
	resource, group, _ := strings.Cut(asked.Resource, ".")
	scope := "at the cluster scope"
	if namespace, _, namespaced := strings.Cut(asked.Object, "/"); namespaced {
		scope = fmt.Sprintf("in the namespace %q", namespace)
	}
	return failure(r, metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Group: group, Kind: resource},
		Message: fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q %s; declare what handlers do beside handling with "+
			"einmal.Permissions or einmal.Applies", asked.Resource, "operator", strings.Join(verbsOf(asked), "-and-"), resource, group, scope),
	})
}

// notServed is the answer of an API server that does not know the path: the version of the kind, or its subresource.
func notServed(r *http.Request) *http.Response {
	return failure(r, metav1.Status{
		Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{},
		Message: "the server could not find the requested resource",
	})
}

func failure(r *http.Request, status metav1.Status) *http.Response {
	code := int(status.Code)
	status.TypeMeta, status.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	body, err := json.Marshal(status)
	if err != nil {
		body = []byte(status.Message)
	}
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
