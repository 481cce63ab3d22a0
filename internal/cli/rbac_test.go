package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal"
)

// The command rbac prints the permissions that an operator needs: for its kinds, for its handlers, and for its own objects.
func TestRolesArePrinted(t *testing.T) {
	nothing := func(context.Context, *einmal.Change[corev1.Node]) error { return nil }
	op := einmal.New("nodes.example.com", einmal.Permissions(&corev1.Pod{}, "list", "delete"))
	einmal.For[corev1.Node](op).OnCreate("nothing", nothing)
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
			if code := command(t, op, append([]string{"rbac"}, test.args...), &out, &failures); code != 0 {
				t.Fatalf("exit code %d: %s", code, &failures)
			}
			if got := told(t, out.String()); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("it prints\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// Permissions that a handler asks for hold for its kind: only owners whose handlers apply children get finalizers, and a kind with event
// handlers alone is not patched. Without events there is no permission for them.
func TestPermissionsOfHandlersArePrinted(t *testing.T) {
	op := einmal.New("nodes.example.com", einmal.WithoutEvents())
	einmal.For[corev1.Node](op).OnEvent("count", func(context.Context, *einmal.Change[corev1.Node]) error { return nil }, einmal.Permissions(&corev1.Pod{}, "list"))
	einmal.For[corev1.Namespace](op).OnCreate("make", func(context.Context, *einmal.Change[corev1.Namespace]) error { return nil }, einmal.Applies(&corev1.ConfigMap{}))
	var out, failures bytes.Buffer
	if code := command(t, op, []string{"rbac", "--name", "n", "--state-namespace", "s", "--roles-only"}, &out, &failures); code != 0 {
		t.Fatalf("exit code %d: %s", code, &failures)
	}
	const want = "ClusterRole n: get list watch nodes, get list watch patch namespaces, patch namespaces/status, update namespaces/finalizers, list pods, get create patch configmaps"
	if got := told(t, out.String()); got[0] != want {
		t.Errorf("it prints\n%s\nwant\n%s", got[0], want)
	}
}

// Permissions in one namespace become a Role there and are not part of the ClusterRole. What the operator serves in that namespace is in the
// same Role.
func TestPermissionsInOneNamespaceAreARole(t *testing.T) {
	op := einmal.New("nodes.example.com", einmal.Permissions(&corev1.Pod{}, "list"), einmal.PermissionsIn("a", &corev1.Secret{}, "get"), einmal.PermissionsIn("", &corev1.Secret{}, "update"))
	einmal.For[corev1.Node](op).OnCreate("nothing", func(context.Context, *einmal.Change[corev1.Node]) error { return nil })
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
		if code := command(t, op, args, &out, &failures); code != 0 {
			t.Fatalf("exit code %d: %s", code, &failures)
		}
		if got := told(t, out.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s prints\n%s\nwant\n%s", namespaces, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// told returns one line for the permissions of each role.
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

// A permission for an unknown kind is a registration error.
func TestPermissionsForAnUnknownKindAreReported(t *testing.T) {
	type unknown struct{ corev1.Pod }
	op := einmal.New("unknown.example.com", einmal.Permissions(&unknown{}, "get"), einmal.Permissions(nil), einmal.Permissions(&corev1.Pod{}), einmal.PermissionsIn("a", nil))
	einmal.For[corev1.ConfigMap](op).OnCreate("nothing", func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil })
	err := op.Run(t.Context(), &rest.Config{}, einmal.RunOptions{SingleReplica: true})
	for _, part := range []string{"option Permissions: *cli_test.unknown", "einmal.Scheme", "option Permissions: must have an object of the kind and at least one verb", "option PermissionsIn: must have"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the mistake does not say %q: %v", part, err)
		}
	}
	var _ client.Object = &unknown{}
}
