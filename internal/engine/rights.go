package engine

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/einmal-operators/einmal/internal/core/filter"
)

// Rights are what an operator may ask of the API server, sorted by where it holds.
type Rights struct {
	// ClusterWide holds for kinds without namespaces; Served in the Namespaces that are served.
	ClusterWide, Served []rbacv1.PolicyRule
	Namespaces          filter.Namespaces
	// AtHome holds in the namespace Home, where the operator keeps its own books.
	AtHome []rbacv1.PolicyRule
	Home   string
	// Asked are those of the rules that handlers asked for.
	Asked []rbacv1.PolicyRule
}

// Where tells where objects of a kind live.
type Where string

// The places of objects.
const (
	ClusterWide  Where = "cluster-wide"
	InNamespaces Where = "in namespaces"
)

// Allow adds a rule.
func (r *Rights) Allow(where Where, rule rbacv1.PolicyRule) {
	if where == ClusterWide {
		r.ClusterWide = append(r.ClusterWide, rule)
	} else {
		r.Served = append(r.Served, rule)
	}
}
