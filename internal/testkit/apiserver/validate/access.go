package validate

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// PathSegment checks a name that may be part of a path. The name of a role or of its binding needs nothing else.
func PathSegment(name string, prefix bool) []string { //nolint:revive // Kubernetes gives the signature.
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// Role checks a Role.
func Role(object, _ *rbacv1.Role) field.ErrorList {
	var refused field.ErrorList
	for i, rule := range object.Rules {
		at := field.NewPath("rules").Index(i)
		refused = append(refused, when(len(rule.Verbs) == 0, field.Required(at.Child("verbs"), "verbs must contain at least one value"))...)
		refused = append(refused, when(len(rule.APIGroups) == 0, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))...)
		refused = append(refused, when(len(rule.Resources) == 0, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))...)
	}
	return refused
}

// RoleFields are the fields of a Role that are checked.
func RoleFields() []string {
	return below("rules", []string{"verbs", "apiGroups", "resources", "resourceNames"})
}

// RoleBinding checks a RoleBinding, whose role cannot be changed.
func RoleBinding(object, old *rbacv1.RoleBinding) field.ErrorList {
	at, name := field.NewPath("roleRef"), func(name string) []string { return PathSegment(name, false) }
	refused := join(
		oneOf(at.Child("apiGroup"), object.RoleRef.APIGroup, rbacv1.GroupName),
		oneOf(at.Child("kind"), object.RoleRef.Kind, "Role", "ClusterRole"),
		named(at.Child("name"), object.RoleRef.Name, name),
		when(old != nil && old.RoleRef != object.RoleRef, field.Invalid(at, object.RoleRef, "cannot change roleRef")),
	)
	for i, subject := range object.Subjects {
		if subject.Kind == rbacv1.ServiceAccountKind {
			account := func(name string) []string { return metavalidation.ValidateServiceAccountName(name, false) }
			refused = append(refused, named(field.NewPath("subjects").Index(i).Child("name"), subject.Name, account)...)
		}
	}
	return refused
}

// RoleBindingFields are the fields of a RoleBinding that are checked.
func RoleBindingFields() []string {
	return []string{"roleRef", "subjects.kind=ServiceAccount", "subjects.name", "subjects.namespace"}
}
