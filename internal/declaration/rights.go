package declaration

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
	// In has the rules that hold in one namespace each.
	In map[string][]rbacv1.PolicyRule
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

// AllowIn adds a rule that holds in one namespace; "" is Home.
func (r *Rights) AllowIn(namespace string, rule rbacv1.PolicyRule) {
	if namespace == "" {
		r.AtHome = append(r.AtHome, rule)
		return
	}
	if r.In == nil {
		r.In = map[string][]rbacv1.PolicyRule{}
	}
	r.In[namespace] = append(r.In[namespace], rule)
}
