package validate

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RoleName checks the name of a role or of its binding, which may hold almost everything.
func RoleName(name string, prefix bool) []string { //nolint:revive // Kubernetes gives the signature.
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// Role checks a Role.
func Role(object, _ *rbacv1.Role) field.ErrorList {
	refused := rules(object.Rules)
	for i, rule := range object.Rules {
		refused = append(refused, when(len(rule.NonResourceURLs) > 0, field.Invalid(field.NewPath("rules").Index(i).Child("nonResourceURLs"),
			rule.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))...)
	}
	return refused
}

// ClusterRole checks a ClusterRole.
func ClusterRole(object, _ *rbacv1.ClusterRole) field.ErrorList { return rules(object.Rules) }

func rules(list []rbacv1.PolicyRule) field.ErrorList {
	var refused field.ErrorList
	for i, rule := range list {
		at := field.NewPath("rules").Index(i)
		refused = append(refused, when(len(rule.Verbs) == 0, field.Required(at.Child("verbs"), "verbs must contain at least one value"))...)
		if len(rule.NonResourceURLs) > 0 {
			refused = append(refused, when(len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0,
				field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))...)
			continue
		}
		refused = append(refused, when(len(rule.APIGroups) == 0, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))...)
		refused = append(refused, when(len(rule.Resources) == 0, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))...)
	}
	return refused
}

// RoleBinding checks a RoleBinding, whose role cannot be changed.
func RoleBinding(object, old *rbacv1.RoleBinding) field.ErrorList {
	refused := join(roleRef(object.RoleRef, "Role", "ClusterRole"), subjects(object.Subjects))
	return append(refused, when(old != nil && old.RoleRef != object.RoleRef, field.Invalid(field.NewPath("roleRef"), object.RoleRef, "cannot change roleRef"))...)
}

// ClusterRoleBinding checks a ClusterRoleBinding, whose role cannot be changed.
func ClusterRoleBinding(object, old *rbacv1.ClusterRoleBinding) field.ErrorList {
	refused := join(roleRef(object.RoleRef, "ClusterRole"), subjects(object.Subjects))
	for i, subject := range object.Subjects {
		refused = append(refused, when(subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == "",
			field.Required(field.NewPath("subjects").Index(i).Child("namespace"), ""))...)
	}
	return append(refused, when(old != nil && old.RoleRef != object.RoleRef, field.Invalid(field.NewPath("roleRef"), object.RoleRef, "cannot change roleRef"))...)
}

func roleRef(ref rbacv1.RoleRef, kinds ...string) field.ErrorList {
	at := field.NewPath("roleRef")
	name := func(name string) []string { return RoleName(name, false) }
	return join(
		oneOf(at.Child("apiGroup"), ref.APIGroup, rbacv1.GroupName),
		oneOf(at.Child("kind"), ref.Kind, kinds...),
		named(at.Child("name"), ref.Name, name),
	)
}

func subjects(list []rbacv1.Subject) field.ErrorList {
	var refused field.ErrorList
	for i, subject := range list {
		at := field.NewPath("subjects").Index(i)
		refused = append(refused, required(at.Child("name"), subject.Name)...)
		switch subject.Kind {
		case rbacv1.ServiceAccountKind:
			account := func(name string) []string { return metavalidation.ValidateServiceAccountName(name, false) }
			refused = append(refused, optionalName(at.Child("name"), subject.Name, account)...)
			refused = append(refused, oneOf(at.Child("apiGroup"), subject.APIGroup, "")...)
		case rbacv1.UserKind, rbacv1.GroupKind:
			refused = append(refused, oneOf(at.Child("apiGroup"), subject.APIGroup, rbacv1.GroupName)...)
		default:
			refused = append(refused, field.NotSupported(at.Child("kind"), subject.Kind, []string{"ServiceAccount", "User", "Group"}))
		}
	}
	return refused
}
