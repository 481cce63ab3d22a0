package register

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
)

// Fits reports whether JSON of one Go type can be read as another. It is always true for open types and for types that
// marshal themselves.
func Fits(from, into reflect.Type) bool {
	for from.Kind() == reflect.Pointer {
		from = from.Elem()
	}
	for into.Kind() == reflect.Pointer {
		into = into.Elem()
	}
	if from == into || custom(from) || custom(into) || from.Kind() == reflect.Interface || into.Kind() == reflect.Interface {
		return true
	}
	return shape(from) == shape(into)
}

// custom reports whether a type marshals or unmarshals itself as JSON or text.
func custom(in reflect.Type) bool {
	pointer := reflect.PointerTo(in)
	return pointer.Implements(reflect.TypeFor[stdjson.Marshaler]()) || pointer.Implements(reflect.TypeFor[stdjson.Unmarshaler]()) ||
		pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// shape returns the JSON type that values of a Go type are written as.
func shape(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		if of == reflect.TypeFor[stdjson.Number]() {
			return "number"
		}
		return "string"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "string" // In base64.
		}
		return "array"
	case reflect.Array:
		return "array"
	default:
		return "number"
	}
}
