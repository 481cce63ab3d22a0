package kind

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/validate"
)

// jobKinds are the kinds of work that ends, and what limits disruptions of pods.
func jobKinds() []builtin {
	batch := batchv1.SchemeGroupVersion
	return []builtin{
		{
			version: batch, example: &batchv1.Job{}, names: inAll(names("jobs", "Job")), status: true, generation: true, orphans: true,
			defaults: only(defaultJob), validate: both(validate.Job), checked: validate.JobFields(),
		},
		{
			version: batch, example: &batchv1.CronJob{}, names: inAll(names("cronjobs", "CronJob", "cj")), status: true, generation: true,
			defaults: only(defaultCronJob), validate: both(validate.CronJob), checked: validate.CronJobFields(),
		},
		{
			version: policyv1.SchemeGroupVersion, example: &policyv1.PodDisruptionBudget{},
			names: names("poddisruptionbudgets", "PodDisruptionBudget", "pdb"), status: true, generation: true, putChecks: true,
			validate: both(validate.DisruptionBudget), checked: validate.DisruptionBudgetFields(),
		},
		{
			version: networkingv1.SchemeGroupVersion, example: &networkingv1.Ingress{}, names: names("ingresses", "Ingress", "ing"),
			status: true, generation: true, putCreates: true, checked: []string{},
		},
		{
			version: networkingv1.SchemeGroupVersion, example: &networkingv1.NetworkPolicy{},
			names: names("networkpolicies", "NetworkPolicy", "netpol"), generation: true, checked: []string{},
		},
	}
}

// accessKinds are the kinds of role-based access control.
func accessKinds() []builtin {
	access := rbacv1.SchemeGroupVersion
	return []builtin{
		{
			version: access, example: &rbacv1.Role{}, names: names("roles", "Role"), putCreates: true,
			name: validate.PathSegment, validate: both(validate.Role), checked: validate.RoleFields(),
		},
		{
			version: access, example: &rbacv1.ClusterRole{}, names: names("clusterroles", "ClusterRole"), cluster: true, putCreates: true,
			name: validate.PathSegment, checked: []string{},
		},
		{
			version: access, example: &rbacv1.RoleBinding{}, names: names("rolebindings", "RoleBinding"), putCreates: true,
			name: validate.PathSegment, defaults: only(defaultRoleBinding), validate: both(validate.RoleBinding), checked: validate.RoleBindingFields(),
		},
		{
			version: access, example: &rbacv1.ClusterRoleBinding{}, names: names("clusterrolebindings", "ClusterRoleBinding"), cluster: true, putCreates: true,
			name: validate.PathSegment, checked: []string{},
		},
	}
}

// clusterKinds are the kinds of the machinery below pods.
func clusterKinds() []builtin {
	core := corev1.SchemeGroupVersion
	return []builtin{
		{
			version: core, example: &corev1.Node{}, names: names("nodes", "Node", "no"), cluster: true, status: true,
			checked: []string{"spec.unschedulable", "spec.providerID"},
		},
		{
			version: core, example: &corev1.PersistentVolume{}, names: names("persistentvolumes", "PersistentVolume", "pv"), cluster: true, status: true,
			checked: []string{},
		},
		{
			version: storagev1.SchemeGroupVersion, example: &storagev1.StorageClass{}, names: names("storageclasses", "StorageClass", "sc"), cluster: true,
			defaults: only(defaultStorageClass), validate: both(validate.StorageClass),
			checked: validate.StorageClassFields(),
		},
		{
			version: schedulingv1.SchemeGroupVersion, example: &schedulingv1.PriorityClass{}, names: names("priorityclasses", "PriorityClass", "pc"),
			cluster: true, checked: []string{},
		},
	}
}
