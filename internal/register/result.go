package register

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// CheckResult returns an error for a type that must not be recorded as the result of a step.
func CheckResult(of reflect.Type, hides func(string) bool) error {
	if of.Kind() != reflect.Struct || of.Name() == "" {
		return fmt.Errorf("result type %s is not a named struct: declare one, such as "+
			"type Account struct { ID string `json:\"id\"` }, or use Step if there is no result to record", of)
	}
	if len(jsonNames(of)) == 0 {
		return fmt.Errorf("result type %s has no field that JSON can encode: export its fields", of)
	}
	check := resultCheck{hides: hides, seen: map[reflect.Type]bool{}}
	if err := check.of(of); err != nil {
		return fmt.Errorf("result type %s: %w; everyone who can read the object can read its record, so store the value "+
			"in a Secret and record the name of the Secret", of, err)
	}
	return nil
}

// ResultText returns a result as JSON, as it is recorded.
func ResultText(result any, hides func(string) bool) (stdjson.RawMessage, error) {
	var text bytes.Buffer
	encoder := stdjson.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return nil, fmt.Errorf("marshal the result: %w", err)
	}
	if text.Len() > record.ResultLimit {
		return nil, fmt.Errorf("the result has %d bytes of JSON, the maximum is %d: "+
			"record an id, and store the rest in an object of its own", text.Len(), record.ResultLimit)
	}
	if hides(text.String()) {
		return nil, errors.New("the result contains a value that looks like a secret, and everyone who can read the object can read " +
			"its record: store it in a Secret and record the name of the Secret")
	}
	return bytes.TrimSpace(text.Bytes()), nil
}

// resultCheck walks through a type and the types of its fields.
type resultCheck struct {
	hides func(string) bool
	seen  map[reflect.Type]bool
}

func (c resultCheck) of(in reflect.Type) error {
	if c.seen[in] {
		return nil
	}
	c.seen[in] = true
	if redacts(in) {
		return fmt.Errorf("%s redacts itself in logs", in)
	}
	if in.PkgPath() == "k8s.io/api/core/v1" && in.Name() == "Secret" {
		return fmt.Errorf("%s is secret", in)
	}
	switch in.Kind() { //nolint:exhaustive // The others contain no other types.
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return c.of(in.Elem())
	case reflect.Map:
		return errors.Join(c.of(in.Key()), c.of(in.Elem()))
	case reflect.Struct:
		for name, field := range jsonNames(in) {
			if c.hides(fmt.Sprintf("%q:%q", name, "x")) {
				return fmt.Errorf("field %s is named like a secret", name)
			}
			if err := c.of(field); err != nil {
				return err
			}
		}
	}
	return nil
}

// redacts reports whether a type formats itself for logs or for printing, as types do that hide a secret. Times, and
// types that embed one, format themselves too, but hide nothing.
func redacts(in reflect.Type) bool {
	timed := isTime(in) || in.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(in), func(field reflect.StructField) bool {
		return field.Anonymous && isTime(field.Type)
	})
	return !timed && in.Kind() != reflect.Interface && hiding(in)
}

func isTime(in reflect.Type) bool { return in == reflect.TypeFor[time.Time]() }

func hiding(in reflect.Type) bool {
	for _, way := range []reflect.Type{
		reflect.TypeFor[slog.LogValuer](), reflect.TypeFor[fmt.Formatter](), reflect.TypeFor[fmt.GoStringer](),
	} {
		if in.Implements(way) || reflect.PointerTo(in).Implements(way) {
			return true
		}
	}
	return false
}

// jsonNames returns the fields of a struct by their JSON names, including those of embedded structs.
func jsonNames(in reflect.Type) map[string]reflect.Type {
	names := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(in) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() || field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct {
			continue
		}
		if name == "" {
			name = field.Name
		}
		names[name] = field.Type
	}
	return names
}
