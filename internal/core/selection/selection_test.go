package selection_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/selection"
)

// served returns the result of discovery: versions are in the server's order of preference.
func served() []selection.Resource {
	all := func(r selection.Resource) selection.Resource {
		if r.Verbs == nil {
			r.Verbs = []string{"get", "list", "watch", "patch"}
		}
		r.Singular, r.Namespaced = strings.ToLower(r.Kind), !slices.Contains([]string{"Node", "Fleet"}, r.Kind)
		return r
	}
	listed := []selection.Resource{
		{Version: "v1", Kind: "Pod", Plural: "pods", ShortNames: []string{"po"}, Categories: []string{"all"}},
		{Version: "v1", Kind: "Event", Plural: "events", ShortNames: []string{"ev"}},
		{Version: "v1", Kind: "Node", Plural: "nodes"},
		{Version: "v1", Kind: "Binding", Plural: "bindings", Verbs: []string{"create"}},
		{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", ShortNames: []string{"deploy"}, Categories: []string{"all"}},
		{Group: "events.k8s.io", Version: "v1", Kind: "Event", Plural: "events", ShortNames: []string{"ev"}, Categories: []string{"all"}},
		{Group: "a.dev", Version: "v1", Kind: "Thing", Plural: "things", ShortNames: []string{"th"}, Categories: []string{"all"}},
		{Group: "a.dev", Version: "v1beta1", Kind: "Thing", Plural: "things", ShortNames: []string{"th"}, Categories: []string{"all"}},
		{Group: "a.dev", Version: "v1beta1", Kind: "Draft", Plural: "drafts"},
		{Group: "b.dev", Version: "v2", Kind: "Thing", Plural: "things", ShortNames: []string{"th"}},
		{Group: "b.dev", Version: "v2", Kind: "Podlike", Plural: "podlikes", ShortNames: []string{"po"}, Verbs: []string{"get", "list", "watch"}},
		{Group: "b.dev", Version: "v2", Kind: "Fleet", Plural: "fleets", Categories: []string{"all"}},
		{Group: "b.dev", Version: "v2", Kind: "Metric", Plural: "pods", Verbs: []string{"get", "list"}},
	}
	for i := range listed {
		listed[i] = all(listed[i])
	}
	return listed
}

func names(of []selection.Resource) []string {
	var all []string
	for _, r := range of {
		all = append(all, strings.ReplaceAll(r.APIVersion(), "/", " ")+" "+r.Kind)
	}
	return all
}

type given struct {
	name, category string
	everything     bool
	group, version string
	needs          selection.Needs
}

func (g given) selector(t *testing.T) selection.Selector {
	t.Helper()
	made, err := selection.New(g.name, g.category, g.everything, g.group, g.version)
	if err != nil {
		t.Fatalf("%+v: %v", g, err)
	}
	return made
}

// Selectors choose kinds by group, version and resource, by category, or everything.
func TestSelectorsChoose(t *testing.T) {
	writes, namespaced := selection.Needs{Writes: true}, selection.Needs{Namespaced: true}
	for what, test := range map[string]struct {
		given
		kinds []string
	}{
		"a kind":                       {given{name: "Deployment"}, []string{"apps v1 Deployment"}},
		"a plural":                     {given{name: "deployments"}, []string{"apps v1 Deployment"}},
		"a singular":                   {given{name: "deployment"}, []string{"apps v1 Deployment"}},
		"a short name":                 {given{name: "deploy"}, []string{"apps v1 Deployment"}},
		"a name with its group":        {given{name: "things.b.dev"}, []string{"b.dev v2 Thing"}},
		"a name with version, group":   {given{name: "things.v1beta1.a.dev"}, []string{"a.dev v1beta1 Thing"}},
		"a name and a group":           {given{name: "things", group: "a.dev"}, []string{"a.dev v1 Thing"}},
		"a name and a version":         {given{name: "things", version: "v1beta1"}, []string{"a.dev v1beta1 Thing"}},
		"a name in the core group":     {given{name: "pods.v1"}, []string{"v1 Pod"}},
		"the core group by its name":   {given{name: "pods.core"}, []string{"v1 Pod"}},
		"the core group as a field":    {given{everything: true, group: "core", needs: writes}, []string{"v1 Pod", "v1 Node"}},
		"the core group has priority":  {given{name: "po"}, []string{"v1 Pod"}},
		"events by name":               {given{name: "events", group: "events.k8s.io"}, []string{"events.k8s.io v1 Event"}},
		"a version that is not served": {given{name: "things.v7.a.dev"}, nil},
		"the preferred version of the kind, not of the group": {given{name: "Draft"}, []string{"a.dev v1beta1 Draft"}},
		"a category":               {given{category: "all"}, []string{"v1 Pod", "apps v1 Deployment", "a.dev v1 Thing", "b.dev v2 Fleet"}},
		"a category in namespaces": {given{category: "all", needs: namespaced}, []string{"v1 Pod", "apps v1 Deployment", "a.dev v1 Thing"}},
		"a category of a group":    {given{category: "all", group: "apps"}, []string{"apps v1 Deployment"}},
		"a version of everything":  {given{everything: true, version: "v1beta1"}, []string{"a.dev v1beta1 Thing", "a.dev v1beta1 Draft"}},
		"everything": {given{everything: true, needs: writes}, []string{
			"v1 Pod", "v1 Node", "apps v1 Deployment", "a.dev v1 Thing", "a.dev v1beta1 Draft", "b.dev v2 Thing", "b.dev v2 Fleet",
		}},
		"a kind that is only read need not support patch": {given{name: "podlikes"}, []string{"b.dev v2 Podlike"}},
		"a name of a cluster-wide kind":                   {given{name: "nodes", needs: namespaced}, []string{"v1 Node"}},
	} {
		t.Run(what, func(t *testing.T) {
			choice := test.selector(t).Choose(served(), test.needs)
			if diff := cmp.Diff(test.kinds, names(choice.Kinds)); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

// Scenario 86 (docs/concepts/scenarios.md): a selector that has chosen nothing says why, and what to do.
func TestSelectorsTellWhyTheyChooseNothing(t *testing.T) {
	for what, test := range map[string]struct {
		given
		want string
	}{
		"several": {given{name: "things"}, `kinds called "things" are ambiguous (things.a.dev, things.b.dev), so none is served; add the group to the name, such as "things.a.dev"`},
		"none":    {given{name: "nothing"}, `waiting for kinds called "nothing" to be served: is the CustomResourceDefinition installed?`},
		"none of a version": {
			given{name: "things.v7.a.dev"},
			`waiting for kinds called "things" of the group a.dev in the version v7 to be served: is the CustomResourceDefinition installed?`,
		},
		"not listed":    {given{name: "bindings"}, `kinds called "bindings" do not support list and watch: bindings`},
		"not patched":   {given{name: "podlikes", needs: selection.Needs{Writes: true}}, `kinds called "podlikes" do not support patch, which the handlers need: podlikes.b.dev`},
		"core goes":     {given{name: "pods"}, ""},
		"no such thing": {given{category: "none"}, ""},
		"two events":    {given{name: "ev", group: "events.k8s.io"}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			asked := test.selector(t)
			if got := asked.Trouble(asked.Choose(served(), test.needs)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Kinds that a selector for everything leaves out are listed.
func TestSelectorsNameWhatTheyLeaveOut(t *testing.T) {
	everything := given{everything: true}.selector(t)
	choice := everything.Choose(served(), selection.Needs{Writes: true})
	if got := selection.Names(choice.Unwatched); got != "bindings, pods.b.dev" {
		t.Errorf("cannot be watched: %s", got)
	}
	if got := selection.Names(choice.Unwritten); got != "podlikes.b.dev" {
		t.Errorf("cannot be patched: %s", got)
	}
}

func TestBadSelectorsAreRefused(t *testing.T) {
	for want, given := range map[string]given{
		"must set exactly one of":                    {},
		"one of Name, Category and":                  {name: "pods", category: "all"},
		"invalid Name \".apps\": use a form such as": {name: ".apps"},
		"invalid Name \"pods.\"":                     {name: "pods."},
		"invalid Name \"apps/v1\"":                   {name: "apps/v1"},
		"leave Group and Version empty":              {name: "deployments.apps", group: "apps"},
		"or use the bare name":                       {name: "deployments.v1.apps", version: "v1"},
		"invalid Group \"apps/v1\"":                  {everything: true, group: "apps/v1"},
		"invalid Group \"*\": blanks, ":              {everything: true, group: "*"},
		"invalid Category \"a b\"":                   {category: "a b"},
		"invalid Version \"v1 \"":                    {everything: true, version: "v1 "},
	} {
		_, err := selection.New(given.name, given.category, given.everything, given.group, given.version)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", given, err, want)
		}
	}
}

// A kind is served once, however many selectors choose it.
func TestKindsAreAssignedOnce(t *testing.T) {
	ask := func(all ...given) []selection.Asked {
		asked := make([]selection.Asked, len(all))
		for i, one := range all {
			asked[i] = selection.Asked{Selector: one.selector(t), Needs: one.needs}
		}
		return asked
	}
	made := selection.Assign(ask(given{name: "things.v1beta1.a.dev"}, given{category: "all"}, given{everything: true, group: "apps"}, given{name: "po"}), served(),
		func(group, kind string) bool { return group == "" && kind == "Pod" })
	var left []string
	for _, one := range made.Left {
		left = append(left, one.APIVersion()+" "+one.Kind+" "+one.Other)
	}
	if diff := cmp.Diff([]string{"a.dev v1beta1 Thing", "apps v1 Deployment", "b.dev v2 Fleet"}, names(resources(made.Kinds))); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
	if by := made.Kinds[1].By; !slices.Equal(by, []int{1, 2}) {
		t.Errorf("deployments are served for %v", by)
	}
	if diff := cmp.Diff([]string{"v1 Pod ", "a.dev/v1 Thing v1beta1", "v1 Pod "}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func resources(of []selection.Assigned) []selection.Resource {
	all := make([]selection.Resource, len(of))
	for i, one := range of {
		all[i] = one.Resource
	}
	return all
}
