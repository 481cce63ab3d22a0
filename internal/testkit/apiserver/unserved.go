package apiserver

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
)

// ReasonNotServed is the reason of the refusal of a subresource that a real server has and this one has not. Its code is 501.
const ReasonNotServed metav1.StatusReason = "NotServed"

// unserved refuses a subresource that only a real server has.
func unserved(k *kind.Kind, subresource string) error {
	const scale = "scale"
	has := map[string][]string{
		pods:                {"eviction", "binding", "log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers", "resize"},
		accounts:            {"token"},
		namespaces:          {"finalize"},
		"nodes":             {"proxy"},
		"services":          {"proxy"},
		"deployments.apps":  {scale},
		"statefulsets.apps": {scale},
	}
	if k == nil {
		return nil
	}
	lacking := subresource == scale && k.LacksScale
	if !lacking && !slices.Contains(has[k.Resource()], subresource) {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: ReasonNotServed,
		Message: fmt.Sprintf("%s/%s is not served here: the API server for tests does not have it", k.Plural, subresource),
		Details: &metav1.StatusDetails{Group: k.Group, Kind: k.Plural},
	}}
}

// servedElsewhere reports whether a real server has a kind that this one has not. Then there is no object of it.
func servedElsewhere(k schema.GroupVersionKind) bool {
	stable := regexp.MustCompile(`^v\d+$`)
	return stable.MatchString(k.Version) && scheme.Scheme.Recognizes(k)
}
