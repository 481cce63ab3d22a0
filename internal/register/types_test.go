package register_test

import (
	stdjson "encoding/json"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/internal/register"
)

// The Go type of a field and the type of OnField's values fit if JSON of the one can be read as the other.
func TestOnFieldAcceptsTypesWithTheSameJSON(t *testing.T) {
	for name, test := range map[string]struct {
		field, values any
		want          bool
	}{
		"bytes as base64":     {[]byte{}, "", true},
		"base64 as bytes":     {"", []byte{}, true},
		"bytes as numbers":    {[]byte{}, []int{}, false},
		"a number as Number":  {int64(0), stdjson.Number(""), true},
		"a text as Number":    {"", stdjson.Number(""), false},
		"a text as a number":  {"", 0, false},
		"a pointer":           {new(int), 0, true},
		"a struct as a map":   {struct{ A int }{}, map[string]any{}, true},
		"a list as an array":  {[]string{}, [2]string{}, true},
		"a list as an object": {[]string{}, struct{}{}, false},
		"a time as a text":    {metav1.Time{}, "", true},
		"a type of its own":   {"", time.Time{}, true},
	} {
		if got := register.Fits(reflect.TypeOf(test.field), reflect.TypeOf(test.values)); got != test.want {
			t.Errorf("%s: fits is %t, want %t", name, got, test.want)
		}
	}
}
