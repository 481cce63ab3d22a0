// Package validate checks objects of built-in kinds as an API server does, as far as operators write them. Functions take
// the new object and the old one, which is nil when the object is created.
package validate

import (
	"slices"
	"strconv"
	"strings"

	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	exclusive    = "may not specify more than 1 volume type"
	notNegative  = "must be greater than or equal to 0"
	greaterThan0 = "must be greater than 0"
)

// when returns the problem if there is one.
func when(holds bool, problem *field.Error) field.ErrorList { //nolint:revive // It keeps lists of checks readable.
	if holds {
		return field.ErrorList{problem}
	}
	return nil
}

// join makes one list of several.
func join(lists ...field.ErrorList) field.ErrorList { return slices.Concat(lists...) }

// invalid makes problems of messages about a value.
func invalid[T any](path *field.Path, value T, messages ...string) field.ErrorList {
	var refused field.ErrorList
	for _, message := range messages {
		refused = append(refused, field.Invalid(path, value, message))
	}
	return refused
}

func required(path *field.Path, value string) field.ErrorList {
	return when(value == "", field.Required(path, ""))
}

// oneOf checks that a value is one of those that are supported.
func oneOf[T ~string](path *field.Path, value T, supported ...T) field.ErrorList {
	return when(!slices.Contains(supported, value), field.NotSupported(path, value, supported))
}

// optionalOneOf is oneOf for a field that may be absent.
func optionalOneOf[T ~string](path *field.Path, value *T, supported ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return oneOf(path, *value, supported...)
}

// named checks a name that must be there.
func named(path *field.Path, name string, check func(string) []string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return invalid(path, name, check(name)...)
}

// optionalName checks a name that may be missing.
func optionalName(path *field.Path, name string, check func(string) []string) field.ErrorList {
	if name == "" {
		return nil
	}
	return invalid(path, name, check(name)...)
}

// subdomain checks the name of an object.
func subdomain(name string) []string { return metavalidation.NameIsDNSSubdomain(name, false) }

func atLeast0(path *field.Path, value int64) field.ErrorList {
	return when(value < 0, field.Invalid(path, value, notNegative).WithOrigin("minimum"))
}

func optionalAtLeast0[T ~int32 | ~int64](path *field.Path, value *T) field.ErrorList {
	if value == nil {
		return nil
	}
	return atLeast0(path, int64(*value))
}

func portNumber(path *field.Path, port int32) field.ErrorList {
	return invalid(path, port, validation.IsValidPortNum(int(port))...)
}

// portOrName checks a port that may be the name of one.
func portOrName(path *field.Path, port intstr.IntOrString) field.ErrorList {
	if port.Type == intstr.String {
		return invalid(path, port.StrVal, validation.IsValidPortName(port.StrVal)...)
	}
	return portNumber(path, port.IntVal)
}

// numberOrPercent checks a number of pods, or a part of all pods.
func numberOrPercent(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	switch {
	case value == nil:
		return nil
	case value.Type == intstr.Int:
		return atLeast0(path, int64(value.IntVal))
	}
	return invalid(path, value, validation.IsValidPercent(value.StrVal)...)
}

// atMost100Percent checks a part of all pods that cannot be more than all of them.
func atMost100Percent(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	if value == nil || value.Type == intstr.Int || len(validation.IsValidPercent(value.StrVal)) > 0 {
		return nil
	}
	percent, err := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	return when(err != nil || percent > 100, field.Invalid(path, value, "must not be greater than 100%"))
}

func isZero(value *intstr.IntOrString) bool {
	return value != nil && (value.Type == intstr.Int && value.IntVal == 0 || value.Type == intstr.String && value.StrVal == "0%")
}

// labelSelector checks a selector, which may be absent.
func labelSelector(path *field.Path, selector *metav1.LabelSelector) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

// unique checks that no key is there twice.
type unique map[string]bool

func (u unique) add(path *field.Path, value any, key string) field.ErrorList {
	if u[key] {
		return field.ErrorList{field.Duplicate(path, value)}
	}
	u[key] = true
	return nil
}
