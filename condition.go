package einmal

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/einmal-operators/einmal/internal/core/object"
)

const conditionsField = "conditions"

// SetCondition sets a condition in status.conditions of the handler's copy, by the conventions of Kubernetes. The
// condition needs a Type, a Status and a Reason. LastTransitionTime and ObservedGeneration are always overwritten: the
// time changes only if the Status changes, and the generation is that of the object that the handler got. If the
// condition is already set like this, nothing changes and nothing is written.
//
// It works for types whose status has conditions, usually []metav1.Condition, and for unstructured objects. If the type
// has no conditions, or the condition is incomplete, it returns an error that is permanent. The list is merged by type
// with what other clients have written in the meantime, however the conditions are set.
func (c *Change[T]) SetCondition(condition metav1.Condition) error {
	if err := complete(condition); err != nil {
		return Permanent(fmt.Errorf("condition %q of %s: %w", condition.Type, c.apply.kind.Kind, err))
	}
	generation, _ := object.Get(c.is, "metadata", "generation")
	condition.ObservedGeneration, _ = generation.(int64)
	condition.LastTransitionTime = metav1.Time{}
	var err error
	if free, is := any(c.Object).(*unstructured.Unstructured); is {
		err = setFreeCondition(free, condition)
	} else {
		err = setTypedCondition(reflect.ValueOf(c.Object).Elem(), condition)
	}
	if err != nil {
		return Permanent(fmt.Errorf("condition %s of %s: %w", condition.Type, c.apply.kind.Kind, err))
	}
	return nil
}

// complete returns an error if the condition lacks a required field.
func complete(condition metav1.Condition) error {
	known := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	switch {
	case condition.Type == "":
		return errors.New("has no Type: name what it describes, such as Ready")
	case !slices.Contains(known, condition.Status):
		return fmt.Errorf("invalid Status %q: use metav1.ConditionTrue, ConditionFalse or ConditionUnknown", condition.Status)
	case condition.Reason == "":
		return errors.New("has no Reason: give one word in CamelCase, such as Provisioned")
	}
	return nil
}

func setFreeCondition(in *unstructured.Unstructured, condition metav1.Condition) error {
	items, _, err := unstructured.NestedSlice(in.Object, statusField, conditionsField)
	if err != nil {
		return err
	}
	if items, err = withCondition(items, condition); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(in.Object, items, statusField, conditionsField)
}

// setTypedCondition sets a condition by reflection, whatever Go type the conditions have.
func setTypedCondition(in reflect.Value, condition metav1.Condition) error {
	list, found := fieldNamed(in, statusField)
	if found {
		list, found = fieldNamed(list, conditionsField)
	}
	if !found || list.Kind() != reflect.Slice {
		return fmt.Errorf("%s has no list status.conditions: add the field Conditions []metav1.Condition `json:\"conditions,omitempty\"` to its status, "+
			"or use other fields", in.Type())
	}
	text, err := json.Marshal(list.Interface())
	if err != nil {
		return fmt.Errorf("read status.conditions: %w", err)
	}
	var items []any
	if err := json.Unmarshal(text, &items); err != nil {
		return fmt.Errorf("read status.conditions: %w", err)
	}
	if items, err = withCondition(items, condition); err != nil {
		return err
	}
	if text, err = json.Marshal(items); err != nil {
		return fmt.Errorf("write status.conditions: %w", err)
	}
	written := reflect.New(list.Type())
	if err := json.Unmarshal(text, written.Interface()); err != nil {
		return fmt.Errorf("write status.conditions as %s: %w", list.Type(), err)
	}
	list.Set(written.Elem())
	return nil
}

// pointed follows pointers. It allocates what a nil pointer points to.
func pointed(in reflect.Value) reflect.Value {
	for in.Kind() == reflect.Pointer {
		if in.IsNil() {
			in.Set(reflect.New(in.Type().Elem()))
		}
		in = in.Elem()
	}
	return in
}

// fieldNamed returns the field with a JSON name, also from inlined structs.
func fieldNamed(in reflect.Value, name string) (reflect.Value, bool) {
	if in = pointed(in); in.Kind() != reflect.Struct {
		return in, false
	}
	for field, value := range in.Fields() {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name {
			return value, true
		}
		inline := tag == "" && (field.Anonymous || strings.Contains(options, "inline"))
		if inline && field.Type.Kind() == reflect.Struct {
			if found, has := fieldNamed(value, name); has {
				return found, true
			}
		}
	}
	return in, false
}

// withCondition adds or replaces a condition in a list. It preserves fields of the old one that metav1.Condition does
// not have.
func withCondition(items []any, condition metav1.Condition) ([]any, error) {
	at := slices.IndexFunc(items, func(item any) bool {
		body, is := item.(object.Body)
		return is && object.Text(body, "type") == condition.Type
	})
	var known []metav1.Condition
	body := object.Body{}
	if at >= 0 {
		body = maps.Clone(items[at].(object.Body)) //nolint:forcetypeassert // IndexFunc has checked the type.
		var before metav1.Condition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body, &before); err != nil {
			return nil, fmt.Errorf("read the existing condition: %w", err)
		}
		known = append(known, before)
	}
	if !meta.SetStatusCondition(&known, condition) {
		return items, nil
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&known[0])
	if err != nil {
		return nil, fmt.Errorf("convert the condition: %w", err)
	}
	maps.Copy(body, written)
	if at < 0 {
		return append(items, body), nil
	}
	items[at] = body
	return items, nil
}
