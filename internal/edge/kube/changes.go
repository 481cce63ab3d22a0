package kube

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// namedChanges is how many fields an error names at most.
const namedChanges = 5

// withChanges adds to the API server's refusal of a child which fields of the existing object the request changes. The message of the API server often
// names the whole spec, and that of an admission webhook no field.
func withChanges(err error, existing, desired object.Body) error {
	if !apierrors.IsInvalid(err) && !Denied(err) {
		return err
	}
	changed := changes(existing, desired, "")
	if len(changed) == 0 {
		return err
	}
	if left := len(changed) - namedChanges; left > 0 {
		changed = append(changed[:namedChanges], fmt.Sprintf("%d more", left))
	}
	return fmt.Errorf("%w; the request changes %s", err, strings.Join(changed, ", "))
}

// changes returns the paths of the values that differ from those that exist. Values that are not desired do not count. Items of lists of
// the same length are compared one by one.
func changes(existing, desired any, at string) []string {
	switch desired := desired.(type) {
	case object.Body:
		before, _ := existing.(object.Body)
		var paths []string
		for _, key := range slices.Sorted(maps.Keys(desired)) {
			paths = append(paths, changes(before[key], desired[key], strings.TrimPrefix(at+"."+key, "."))...)
		}
		return paths
	case []any:
		before, _ := existing.([]any)
		if len(before) != len(desired) {
			return []string{at}
		}
		var paths []string
		for i := range desired {
			paths = append(paths, changes(before[i], desired[i], fmt.Sprintf("%s[%d]", at, i))...)
		}
		return paths
	}
	if sameValue(existing, desired) {
		return nil
	}
	return []string{at}
}

// sameValue reports whether two values are equal. The API server may store a quantity in another form, such as 1Gi for 1024Mi.
func sameValue(a, b any) bool {
	one, isText := a.(string)
	other, areTexts := b.(string)
	if reflect.DeepEqual(a, b) || !isText || !areTexts {
		return reflect.DeepEqual(a, b)
	}
	first, err := resource.ParseQuantity(one)
	second, wrong := resource.ParseQuantity(other)
	return err == nil && wrong == nil && first.Cmp(second) == 0
}
