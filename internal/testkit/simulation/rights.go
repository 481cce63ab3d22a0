package simulation

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// electionHome is where replicas are elected of an operator that does not say where it keeps its books.
const electionHome = "default"

// electionSlower makes a Lease last two and a half minutes: otherwise most of what a world with two replicas does is to renew Leases.
const electionSlower = 10

// allowed reports whether the rights that the operator's roles give are enough for a request. It notes the rights that are used, and the
// request if one is missing.
func (w *World) allowed(asked Request) bool {
	namespace, name, namespaced := strings.Cut(asked.Object, "/")
	if !namespaced {
		namespace, name = "", asked.Object
	}
	rights := w.declared.Rights
	rules := slices.Clone(rights.ClusterWide)
	if rights.Namespaces.Match(namespace) {
		rules = append(rules, rights.Served...)
	}
	if namespace == cmp.Or(rights.Home, electionHome) {
		rules = append(rules, rights.AtHome...)
	}
	rules = append(rules, rights.In[namespace]...)
	if asked.Verb == verbUpdate && asked.Subresource == "" {
		asked.creates = !w.exists(asked)
	}
	for _, verb := range verbsOf(asked) {
		if !w.useRight(rules, asked, name, verb) {
			w.history.refuse(asked.String())
			return false
		}
	}
	return true
}

// verbsOf are the verbs of the rights that a request needs: an apply may create the object, and a PUT that does so needs both rights as well.
func verbsOf(asked Request) []string {
	switch {
	case asked.Verb == verbApply:
		return []string{verbPatch, verbCreate}
	case asked.Verb == verbUpdate && asked.creates:
		return []string{verbUpdate, verbCreate}
	default:
		return []string{asked.Verb}
	}
}

func (w *World) useRight(rules []rbacv1.PolicyRule, asked Request, name, verb string) bool {
	resource, group, _ := strings.Cut(asked.Resource, ".")
	if asked.Subresource != "" {
		resource += "/" + asked.Subresource
	}
	for _, rule := range rules {
		unnamed := verb == verbCreate || verb == verbList || verb == verbWatch || verb == verbDeleteAll
		switch {
		case !covers(rule.APIGroups, group), !covers(rule.Resources, resource), !slices.Contains(rule.Verbs, verb):
		case len(rule.ResourceNames) > 0 && (unnamed || !slices.Contains(rule.ResourceNames, name)):
		default:
			w.history.use(rightOf(rule, resource, verb))
			return true
		}
	}
	return false
}

// covers reports whether one of the names is that one, or all, or all subresources of that name.
func covers(names []string, one string) bool {
	_, subresource, _ := strings.Cut(one, "/")
	return slices.ContainsFunc(names, func(name string) bool {
		return name == one || name == rbacv1.ResourceAll || subresource != "" && name == "*/"+subresource
	})
}

// rightOf names one right of a rule: patch widgets.example.com/status.
func rightOf(rule rbacv1.PolicyRule, resource, verb string) string {
	text := verb + " " + resource
	if group := rule.APIGroups[0]; group != "" {
		text += " of " + group
	}
	if len(rule.ResourceNames) > 0 {
		text += " " + strings.Join(rule.ResourceNames, ", ")
	}
	return text
}

// Rights lists the rights that handlers asked for, and whether each was used.
func (w *World) Rights() map[string]bool {
	all := map[string]bool{}
	for _, rule := range w.declared.Rights.Asked {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				name := rightOf(rule, resource, verb)
				all[name] = w.history.used(name)
			}
		}
	}
	return all
}

func (h *history) use(right string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rights == nil {
		h.rights = map[string]bool{}
	}
	h.rights[right] = true
}

// refuse notes a request for which the operator has no right.
func (h *history) refuse(request string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.refused, request) {
		h.refused = append(h.refused, request)
	}
}

// Refused lists the requests for which the operator has no right, in the order in which they were made.
func (w *World) Refused() []string {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return slices.Clone(w.history.refused)
}

func (h *history) used(right string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rights[right]
}
