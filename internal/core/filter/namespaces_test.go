package filter_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/filter"
)

// Scenario 84 (docs/concepts/scenarios.md).
func TestNamespacesAreMatchedAsByKopf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		patterns string // separated by spaces
		in, out  string
		names    string
		fixed    bool
	}{
		{patterns: "", in: "a app-1 kube-system"},
		{patterns: "a", in: "a", out: "b aa", names: "a", fixed: true},
		{patterns: "a b a", in: "a b", out: "c", names: "a b", fixed: true},
		{patterns: "app-*", in: "app-1 app-", out: "app x-app-1"},
		{patterns: "app-?", in: "app-1", out: "app- app-12"},
		{patterns: "app-*,!app-x*", in: "app-1 app-y", out: "app-x app-x1 other"},
		{patterns: "app-*,!*-pr-*,app-pr-123", in: "app-1 app-pr-123", out: "app-pr-1 x-pr-123"},
		{patterns: "app-*,!app-x*,app-x1,!app-*1", in: "app-2", out: "app-x1 app-1"},
		{patterns: "!kube-*", in: "default kub", out: "kube-system kube-"},
		{patterns: "!kube-*,kube-public", in: "default kube-public", out: "kube-system"},
		{patterns: "app-*, !app-x*", in: "", out: "app-x1"},
		{patterns: "app-* tools", in: "app-1 tools", out: "toolsx", names: "tools"},
		{patterns: "a,!a", out: "a b", fixed: true},
		{patterns: "app-*,*", in: "app-1", out: "b"},
	} {
		t.Run(test.patterns, func(t *testing.T) {
			t.Parallel()
			patterns := strings.Fields(strings.ReplaceAll(test.patterns, ", ", ","))
			found, err := filter.ParseNamespaces(patterns...)
			if err != nil {
				t.Fatal(err)
			}
			if got := those(test.in+" "+test.out, found.Match); got != those(test.in, nil) {
				t.Errorf("in are %q, want %q", got, test.in)
			}
			if diff := cmp.Diff(strings.Fields(test.names), append([]string{}, found.Names()...)); diff != "" {
				t.Errorf("names given outright (-want +got):\n%s", diff)
			}
			if found.Fixed() != test.fixed || found.All() != (test.patterns == "") {
				t.Errorf("fixed %t, all %t", found.Fixed(), found.All())
			}
		})
	}
}

func TestPatternsOfNamespacesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for pattern, says := range map[string]string{
		"":           "omit the option",
		"a,":         "omit the option",
		"!":          "omit the option",
		"App":        "invalid name or glob",
		"a/b":        "invalid name or glob",
		"[ab]*":      "invalid name or glob",
		"a,b":        `"b" has no effect: the first glob of the pattern, "a", does not match it`,
		"app-*,tool": `give it as a separate pattern`,
	} {
		if _, err := filter.ParseNamespaces("fine", pattern); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("pattern %q: %v; want %q", pattern, err, says)
		} else if !strings.Contains(err.Error(), `namespaces "`+pattern+`"`) {
			t.Errorf("pattern %q is not named: %v", pattern, err)
		}
	}
}

// those are the names that match, in their order.
func those(names string, match func(string) bool) string {
	var found []string
	for name := range strings.FieldsSeq(names) {
		if match == nil || match(name) {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}
