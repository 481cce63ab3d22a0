package einmal

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The verb rbac prints what an operator needs: for its kinds, for what its handlers ask for, and for its own books.
func TestRolesArePrinted(t *testing.T) {
	nothing := func(context.Context, *Change[corev1.Node]) error { return nil }
	op := New("nodes.example.com", Access(&corev1.Pod{}, "list", "delete"))
	For[corev1.Node](op).OnCreate("nothing", nothing)
	tests := map[string]struct {
		args []string
		want []string
	}{
		"everywhere": {nil, []string{
			"Namespace nodes-example-com-system",
			"ServiceAccount nodes-example-com-system/nodes.example.com",
			"ClusterRole nodes.example.com: get list watch patch nodes, patch nodes/status, list delete pods, create patch events",
			"ClusterRoleBinding nodes.example.com",
			"Role nodes-example-com-system/nodes.example.com-state: get patch configmaps nodes.example.com, create configmaps, get update leases nodes.example.com, create leases",
			"RoleBinding nodes-example-com-system/nodes.example.com-state",
		}},
		"in two namespaces": {[]string{"--name", "n", "--state-namespace", "s", "--namespace", "a", "--namespace=b"}, []string{
			"ServiceAccount s/n",
			"ClusterRole n: get list watch patch nodes, patch nodes/status",
			"ClusterRoleBinding n",
			"Role a/n: list delete pods, create patch events",
			"RoleBinding a/n",
			"Role b/n: list delete pods, create patch events",
			"RoleBinding b/n",
			"Role s/n-state: get patch configmaps nodes.example.com, create configmaps, get update leases nodes.example.com, create leases",
			"RoleBinding s/n-state",
		}},
		"in namespaces by a pattern": {[]string{"--name", "n", "--state-namespace", "s", "--namespace", "app-*", "--roles-only"}, []string{
			"ClusterRole n: get list watch patch nodes, patch nodes/status, list watch namespaces, list delete pods, create patch events",
			"ClusterRoleBinding n",
			"Role s/n-state: get patch configmaps nodes.example.com, create configmaps, get update leases nodes.example.com, create leases",
			"RoleBinding s/n-state",
		}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var out, failures bytes.Buffer
			if code := op.command(t.Context(), append([]string{"rbac"}, test.args...), &out, &failures); code != exitOK {
				t.Fatalf("exit code %d: %s", code, &failures)
			}
			if got := told(t, out.String()); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("it prints\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// Rights in one namespace are a Role there: the ClusterRole does not have them. What is served in that namespace is in the same Role.
func TestRightsInOneNamespaceAreARoleThere(t *testing.T) {
	op := New("nodes.example.com", Access(&corev1.Pod{}, "list"), AccessIn("a", &corev1.Secret{}, "get"), AccessIn("", &corev1.Secret{}, "update"))
	For[corev1.Node](op).OnCreate("nothing", func(context.Context, *Change[corev1.Node]) error { return nil })
	state := "Role s/n-state: update secrets, get patch configmaps nodes.example.com, create configmaps, get update leases nodes.example.com, create leases"
	for namespaces, want := range map[string][]string{
		"": {
			"ClusterRole n: get list watch patch nodes, patch nodes/status, list pods, create patch events",
			"ClusterRoleBinding n", "Role a/n: get secrets", "RoleBinding a/n", state, "RoleBinding s/n-state",
		},
		"--namespace=a": {
			"ClusterRole n: get list watch patch nodes, patch nodes/status",
			"ClusterRoleBinding n", "Role a/n: list pods, create patch events, get secrets", "RoleBinding a/n", state, "RoleBinding s/n-state",
		},
	} {
		var out, failures bytes.Buffer
		args := append([]string{"rbac", "--roles-only", "--name=n", "--state-namespace=s"}, strings.Fields(namespaces)...)
		if code := op.command(t.Context(), args, &out, &failures); code != exitOK {
			t.Fatalf("exit code %d: %s", code, &failures)
		}
		if got := told(t, out.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s prints\n%s\nwant\n%s", namespaces, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// told says in a line what each role gives.
func told(t *testing.T, manifests string) []string {
	t.Helper()
	var lines []string
	for document := range strings.SplitSeq(manifests, "---\n") {
		var role struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Rules    []struct{ Verbs, Resources, ResourceNames []string }
		}
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "" {
			continue
		}
		line := role.Kind + " " + strings.TrimPrefix(role.Metadata.Namespace+"/"+role.Metadata.Name, "/")
		for i, rule := range role.Rules {
			line += map[bool]string{true: ": ", false: ", "}[i == 0]
			line += strings.Join(append(append(rule.Verbs, rule.Resources...), rule.ResourceNames...), " ")
		}
		lines = append(lines, line)
	}
	return lines
}

// Rights to what nobody knows are a registration mistake.
func TestRightsToAnUnknownKindAreAMistake(t *testing.T) {
	type unknown struct{ corev1.Pod }
	op := New("unknown.example.com", Access(&unknown{}, "get"), Access(nil), Access(&corev1.Pod{}), AccessIn("a", nil))
	For[corev1.ConfigMap](op).OnCreate("nothing", func(context.Context, *Change[corev1.ConfigMap]) error { return nil })
	err := op.check()
	for _, part := range []string{"option Access of *einmal.unknown", "einmal.Scheme", "option Access: give an object of the kind, and the verbs", "option AccessIn: give"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the mistake does not say %q: %v", part, err)
		}
	}
	var _ client.Object = &unknown{}
}
