package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// Error reports that an object could not be applied.
type Error struct {
	Object manifest.Object

	refused bool     // the API server rejected the content of the object, so that the object must be changed
	reasons []string // the causes, one line each
	remedy  string   // how to fix the error, or ""
}

// Error returns the origin and name of the object, the causes and the remedy.
func (e *Error) Error() string {
	verb := "could not be applied"
	if e.refused {
		verb = "was rejected by the API server"
	}
	text := fmt.Sprintf("%s: %s %s:\n  %s", e.Object.Origin, e.Object.Name(), verb, strings.Join(e.reasons, "\n  "))
	if e.remedy != "" {
		text += "\n  remedy: " + e.remedy
	}
	return text
}

func explain(object manifest.Object, err error) error {
	explained := &Error{Object: object, reasons: []string{err.Error()}}
	kind := object.GroupVersionKind()
	switch {
	case meta.IsNoMatchError(err):
		explained.reasons = []string{fmt.Sprintf("the API server has no kind %s in %s", kind.Kind, kind.GroupVersion())}
		explained.remedy = "check apiVersion and kind; if they are correct, the kind's CustomResourceDefinition is missing"
	case apierrors.IsInvalid(err):
		explained.refused, explained.reasons = true, reasons(err)
	case strings.Contains(err.Error(), " denied the request"), strings.Contains(err.Error(), " denied request"), // A webhook or policy chooses the status code.
		apierrors.IsBadRequest(err):
		explained.refused = true
	case strings.Contains(err.Error(), "not declared in schema"):
		explained.refused = true
		explained.remedy = "compare the field's name and path with the schema in the kind's CustomResourceDefinition"
	case apierrors.IsNotFound(err) && details(err).Kind == "namespaces":
		explained.remedy = "put the Namespace into the same file, or create it first: " +
			"einmal kubectl create namespace " + object.GetNamespace()
	}
	return explained
}

// reasons returns the causes in a status error, one per line and each with its field.
func reasons(err error) []string {
	var lines []string
	for _, cause := range details(err).Causes {
		line := cause.Message
		if cause.Field != "" && cause.Field != "<nil>" {
			line = cause.Field + ": " + line
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return []string{err.Error()}
	}
	return lines
}

// details returns the details of a status error.
func details(err error) metav1.StatusDetails {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Details != nil {
		return *status.ErrStatus.Details
	}
	return metav1.StatusDetails{}
}
