package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// Error reports that an object could not be applied.
type Error struct {
	Object manifest.Object
	// Refused reports whether the API server rejected the content of the object, so that the object must be changed.
	Refused bool
	// Reasons lists the causes, one line each.
	Reasons []string
	// Remedy suggests how to fix the error. It may be empty.
	Remedy string

	cause error
}

// Error returns the origin and name of the object, the causes and the remedy.
func (e *Error) Error() string {
	verb := "could not be applied"
	if e.Refused {
		verb = "was rejected by the API server"
	}
	text := fmt.Sprintf("%s: %s %s:\n  %s", e.Object.Origin, e.Object.Name(), verb, strings.Join(e.Reasons, "\n  "))
	if e.Remedy != "" {
		text += "\n  remedy: " + e.Remedy
	}
	return text
}

// Unwrap returns the error of the API server.
func (e *Error) Unwrap() error { return e.cause }

func explain(object manifest.Object, err error) error {
	explained := &Error{Object: object, Reasons: []string{err.Error()}, cause: err}
	kind := object.GroupVersionKind()
	switch {
	case meta.IsNoMatchError(err):
		explained.Reasons = []string{fmt.Sprintf("the API server has no kind %s in %s", kind.Kind, kind.GroupVersion())}
		explained.Remedy = "check apiVersion and kind; if they are correct, the kind's CustomResourceDefinition is missing"
	case apierrors.IsInvalid(err):
		explained.Refused, explained.Reasons = true, reasons(err)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied the request"),
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied request"),
		apierrors.IsBadRequest(err):
		explained.Refused = true
	case strings.Contains(err.Error(), "not declared in schema"):
		explained.Refused = true
		explained.Remedy = "compare the field's name and path with the schema in the kind's CustomResourceDefinition"
	case apierrors.IsNotFound(err) && isAbout(err, "namespaces"):
		explained.Remedy = "put the Namespace into the same file, or create it first: " +
			"einmal kubectl create namespace " + object.GetNamespace()
	case utilnet.IsConnectionRefused(err):
		explained.Remedy = "check that the devcluster is running"
	}
	return explained
}

// reasons returns the causes in a status error, one per line and each with its field.
func reasons(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return []string{err.Error()}
	}
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		line := cause.Message
		if cause.Field != "" && cause.Field != "<nil>" {
			line = cause.Field + ": " + line
		}
		lines = append(lines, line)
	}
	return lines
}

func isAbout(err error, resource string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == resource
}
