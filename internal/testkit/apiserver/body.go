package apiserver

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
)

// maxBody is the longest body that is read, as in a real API server.
const maxBody = 3 * 1024 * 1024

func readBody(r *http.Request) ([]byte, error) {
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, nil
}

func mediaType(r *http.Request) string {
	parsed, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return r.Header.Get("Content-Type")
	}
	return parsed
}

func unsupported(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}

// readJSON reads a body that must be JSON.
func readJSON(r *http.Request) ([]byte, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if sent := mediaType(r); sent != "" && sent != runtime.ContentTypeJSON {
		return nil, unsupported(runtime.ContentTypeJSON)
	}
	return body, nil
}

// strictness is what becomes of fields that the kind does not have.
type strictness string

func strictnessOf(query url.Values) strictness {
	if asked := query.Get("fieldValidation"); asked != "" {
		return strictness(asked)
	}
	return metav1.FieldValidationWarn
}

// judge makes warnings of problems, or an error.
func (s strictness) judge(problems []string) (warnings []string, err error) {
	switch {
	case len(problems) == 0 || s == metav1.FieldValidationIgnore:
		return nil, nil
	case s == metav1.FieldValidationStrict:
		return nil, fmt.Errorf("strict decoding error: %s", strings.Join(problems, ", "))
	}
	return problems, nil
}

// decode reads an object of the kind from JSON: fields that it does not have are gone, defaults are there.
func decode(k *kind.Kind, text []byte) (object *unstructured.Unstructured, problems []string, err error) {
	object = &unstructured.Unstructured{}
	duplicates, err := kjson.UnmarshalStrict(text, &object.Object)
	if err != nil {
		return nil, nil, err
	}
	if object.Object == nil {
		object.Object = map[string]any{}
	}
	for _, duplicate := range duplicates {
		problems = append(problems, duplicate.Error())
	}
	if object.GetKind() == "" {
		object.SetKind(k.Kind)
	}
	if object.GetAPIVersion() == "" {
		object.SetAPIVersion(k.GroupVersion().String())
	}
	if !k.Custom() && object.GroupVersionKind() != k.GroupVersionKind {
		return object, problems, nil // It is refused for that.
	}
	unknown, err := k.Shape(object)
	for _, path := range unknown {
		problems = append(problems, fmt.Sprintf("unknown field %q", path))
	}
	return object, problems, err
}

// readObject reads the object in the body of a POST or PUT.
func readObject(q *request) (object *unstructured.Unstructured, warnings []string, err error) {
	text, err := readJSON(q.Request)
	if err != nil {
		return nil, nil, err
	}
	object, problems, err := decode(q.kind, text)
	if err == nil {
		warnings, err = strictnessOf(q.query).judge(problems)
	}
	if err != nil {
		return nil, nil, cannotHandle(q.kind, text, err)
	}
	if version := object.GroupVersionKind().GroupVersion(); version != q.kind.GroupVersion() {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)", version, q.kind.GroupVersion()))
	}
	if !q.kind.Custom() && object.GetKind() != q.kind.Kind {
		return nil, nil, cannotHandle(q.kind, text, fmt.Errorf("converting (%s) to (%s): unknown conversion", object.GetKind(), q.kind.Kind))
	}
	return object, warnings, inNamespace(object, q.namespace)
}

// cannotHandle is the answer to an object that cannot be decoded.
func cannotHandle(k *kind.Kind, text []byte, err error) error {
	var said metav1.TypeMeta
	_ = utiljson.Unmarshal(text, &said) // What it says of itself is wanted as far as it can be read.
	given := schema.FromAPIVersionAndKind(said.APIVersion, said.Kind)
	if given.Kind == "" {
		given = k.GroupVersionKind
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", given.Kind, given.Version, k.Kind, err))
}

// inNamespace puts an object into the namespace of the request.
func inNamespace(object *unstructured.Unstructured, namespace string) error {
	switch object.GetNamespace() {
	case namespace:
	case "":
		object.SetNamespace(namespace)
	default:
		if namespace != "" {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		object.SetNamespace("")
	}
	return nil
}

// hasName checks that an object has the name in the path.
func hasName(object *unstructured.Unstructured, name string) error {
	if object.GetName() == name {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf(
		"the name of the object (%s) does not match the name on the URL (%s)", object.GetName(), name))
}
