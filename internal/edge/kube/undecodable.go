package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// UndecodableError describes the first field of an object that the Go type of its kind cannot hold. It does not contain the value of the
// field, which can be secret.
type UndecodableError struct {
	// Field is the path of the field, such as spec.ports[0].name. It is empty if no single field is the cause.
	Field string `json:"field"`
	// Found is the JSON type of its value, such as string. Want is the Go type of the field, such as int32, or empty if it is unknown.
	Found string `json:"found"`
	Want  string `json:"want,omitempty"`
}

// Error describes the field and its type.
func (e *UndecodableError) Error() string {
	text := "cannot decode the object"
	if e.Field != "" {
		text = fmt.Sprintf("cannot decode field %s: its value is of type %s", e.Field, e.Found)
	}
	if e.Field != "" && e.Want != "" {
		text += ", which does not fit " + e.Want
	}
	return text
}

// Undecodable returns an UndecodableError if the value, which is an object as the API server sent it, cannot be decoded into the Go type of
// the example. Otherwise it returns nil.
func Undecodable(value any, example runtime.Object) error {
	of := reflect.TypeOf(example)
	if of.Kind() != reflect.Pointer {
		return nil
	}
	if failure := undecodable(value, of.Elem()); failure != nil {
		return failure
	}
	return nil
}

func undecodable(value any, goType reflect.Type) *UndecodableError {
	decode := func(one any) error {
		text, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		return decodeAs(goType, text)
	}
	if decode(value) == nil {
		return nil
	}
	field, culprit, err := locate(value, decode)
	failure := &UndecodableError{Field: strings.TrimPrefix(field, "."), Found: jsonType(culprit)}
	if mismatch, is := errors.AsType[*json.UnmarshalTypeError](err); is && mismatch.Type != nil {
		failure.Want = mismatch.Type.String()
	}
	return failure
}

// decodeAs decodes in the same way as the clients of client-go.
func decodeAs(goType reflect.Type, text []byte) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(goType).Interface()) //nolint:wrapcheck // The caller looks at its type.
}

// locate returns the path of the first value that cannot be decoded even without the other values, the value, and the error. For each field
// and each list item, it tries a document that contains nothing else.
func locate(value any, decode func(any) error) (path string, culprit any, err error) {
	if fieldsAreNoCause(value, decode) {
		return "", value, decode(value)
	}
	descend := func(name string, child any, alone func(any) any) bool {
		if decode(alone(child)) == nil {
			return false
		}
		var below string
		below, culprit, err = locate(child, func(one any) error { return decode(alone(one)) })
		path = name + below
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if descend("."+key, value[key], func(one any) any { return map[string]any{key: one} }) {
				return path, culprit, err
			}
		}
	case []any:
		for i, item := range value {
			if descend("["+strconv.Itoa(i)+"]", item, func(one any) any { return []any{one} }) {
				return path, culprit, err
			}
		}
	}
	return "", value, decode(value)
}

// fieldsAreNoCause reports whether an object or an array cannot be decoded even when it is empty.
func fieldsAreNoCause(value any, decode func(any) error) bool {
	switch value.(type) {
	case map[string]any:
		return decode(map[string]any{}) != nil
	case []any:
		return decode([]any{}) != nil
	}
	return false
}

// jsonType returns the JSON type of a decoded value.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	default:
		return "number"
	}
}
