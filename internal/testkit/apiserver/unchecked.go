package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
)

// ReasonNotChecked is the reason of the refusal of a field that this server does not validate. Its code is 501.
const ReasonNotChecked metav1.StatusReason = "NotChecked"

// WithUnchecked allows fields of built-in kinds that this server does not validate and refuses otherwise. A path begins with
// the kind, as in "StatefulSet.spec.template.spec.affinity", and allows everything below it.
func WithUnchecked(paths ...string) Option {
	return func(s *Server) error {
		s.unchecked = append(s.unchecked, paths...)
		return nil
	}
}

// knowUnchecked refuses a path whose kind has no unchecked fields.
func (s *Server) knowUnchecked(kinds []*kind.Kind) error {
	limited := map[string]bool{}
	for _, k := range kinds {
		if k.Checked != nil {
			limited[k.Kind] = true
		}
	}
	for _, path := range s.unchecked {
		if name, _, _ := strings.Cut(path, "."); !limited[name] {
			return fmt.Errorf("option WithUnchecked: %q: no kind %q with unchecked fields, want one of %s",
				path, name, strings.Join(slices.Sorted(maps.Keys(limited)), ", "))
		}
	}
	return nil
}

// checked refuses an object with fields that this server does not validate.
func (w *write) checked(object *unstructured.Unstructured) error {
	if w.kind.Checked == nil || w.subresource == kind.Status {
		return nil
	}
	var texts []string
	details := &metav1.StatusDetails{Name: object.GetName(), Group: w.kind.Group, Kind: w.kind.Kind}
	for _, missing := range w.kind.Checked.Missing(object.Object) {
		path, _, _ := strings.Cut(missing, "=")
		full := w.kind.Kind + "." + path
		if w.server.allows(full) {
			continue
		}
		text := fmt.Sprintf("%s is not checked here: the API server for tests does not validate it; "+
			"allow it with World.AllowUnchecked(%q), or test it with StartCluster", missing, full)
		texts = append(texts, text)
		details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseType(ReasonNotChecked), Message: text, Field: path})
	}
	if len(texts) == 0 {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: ReasonNotChecked, Details: details,
		Message: fmt.Sprintf("%s %q: %s", w.kind.Kind, object.GetName(), strings.Join(texts, "; ")),
	}}
}

// allows reports whether WithUnchecked allows a path.
func (s *Server) allows(path string) bool {
	return slices.ContainsFunc(s.unchecked, func(allowed string) bool {
		return path == allowed || strings.HasPrefix(path, allowed+".")
	})
}
