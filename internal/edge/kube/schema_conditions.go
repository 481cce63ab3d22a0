package kube

import "slices"

// Conditions says which conditions the status of a kind accepts, as far as its schema shows it. Rules that are written as expressions, and
// admission webhooks, can reject more.
type Conditions struct {
	// Listed means that the status has a list of conditions of the usual form.
	Listed bool
	// Types are the only types that the list accepts. If it is empty, the list accepts all types.
	Types []string
}

// Accept reports whether the status accepts a condition of this type.
func (c Conditions) Accept(name string) bool {
	return c.Listed && (len(c.Types) == 0 || slices.Contains(c.Types, name))
}

// conditions reads which conditions the schema of a kind accepts.
func (p property) conditions() Conditions {
	list, found := p.Properties["status"].Properties["conditions"]
	if !found || list.Type != "" && list.Type != "array" {
		return Conditions{}
	}
	if list.Items == nil {
		return Conditions{Listed: true}
	}
	usual := []string{"type", "status", "reason", "message", "observedGeneration", "lastTransitionTime"}
	unusual := func(name string) bool { return !slices.Contains(usual, name) }
	if list.Items.Type != "" && list.Items.Type != "object" || slices.ContainsFunc(list.Items.Required, unusual) {
		return Conditions{}
	}
	accepted := Conditions{Listed: true}
	for _, value := range list.Items.Properties["type"].Enum {
		if name, is := value.(string); is {
			accepted.Types = append(accepted.Types, name)
		}
	}
	return accepted
}
