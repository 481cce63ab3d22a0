package register

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// CheckField returns an error for a field that a handler of a kind with this Go type would never see change.
func CheckField(of reflect.Type, verb cause.Cause, field object.Path) error {
	if field[0] == "metadata" && !field.Under("metadata", "labels") && !field.Under("metadata", "annotations") {
		return fmt.Errorf("field %s: metadata other than labels and annotations is not compared", field)
	}
	switch verb { //nolint:exhaustive // The others compare fields.
	case cause.Delete:
		return fmt.Errorf("field %s: filters of a delete handler cannot use fields, because fields change: use Labels, Annotations or When", field)
	case declaration.Event:
		return fmt.Errorf("field %s: filters of an event handler cannot use fields: use Labels, Annotations or When", field)
	}
	if of == reflect.TypeFor[unstructured.Unstructured]() || field[0] == "metadata" {
		return nil
	}
	return fieldOf(of, field, field)
}

// fieldOf follows a path through a Go type by its JSON names, and returns an error if the path does not exist. In an
// open type (a map, an interface, a type that marshals itself) every path is possible.
func fieldOf(in reflect.Type, rest, whole object.Path) error {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if len(rest) == 0 || in.Kind() == reflect.Map || in.Kind() == reflect.Interface {
		return nil
	}
	if in.Kind() != reflect.Struct {
		return fmt.Errorf("field %s: %s is a %s, which has no field %s (lists are compared as a whole)", whole, in, in.Kind(), rest[0])
	}
	if child, found := jsonField(in, rest[0]); found {
		return fieldOf(child, rest[1:], whole)
	}
	return fmt.Errorf("field %s: %s has no field %s%s", whole, in, rest[0], suggestion(in, rest[0]))
}

// suggestion returns a hint with the field that was probably meant, or with all fields if there are few.
func suggestion(in reflect.Type, name string) string {
	names := slices.Sorted(maps.Keys(jsonNames(in)))
	for _, known := range names {
		if strings.EqualFold(known, name) || distance(known, name) <= 2 && len(name) > 2 {
			return fmt.Sprintf("; did you mean %s?", known)
		}
	}
	if len(names) > 0 && len(names) <= 12 {
		return "; it has " + strings.Join(names, ", ")
	}
	return ""
}

// distance returns the edit distance of two strings: the number of insertions, deletions and substitutions.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func jsonField(in reflect.Type, name string) (reflect.Type, bool) {
	for field := range in.Fields() {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inline := tag == "" && (field.Anonymous || strings.Contains(options, "inline"))
		switch {
		case inline && field.Type.Kind() == reflect.Struct:
			if found, has := jsonField(field.Type, name); has {
				return found, true
			}
		case tag == name || tag == "" && field.Name == name:
			return field.Type, true
		}
	}
	return nil, false
}

// TypeAt returns the Go type of a field that is reached through structs alone.
func TypeAt(in reflect.Type, path object.Path) (reflect.Type, bool) {
	for _, element := range path {
		for in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if in.Kind() != reflect.Struct {
			return nil, false
		}
		child, found := jsonField(in, element)
		if !found {
			return nil, false
		}
		in = child
	}
	return in, true
}
