// Package node creates and deletes the simulated nodes of a cluster. kwok
// simulates what happens on a node.
package node

import (
	"context"
	"fmt"
	"runtime"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/version"
)

const (
	// User is the user name of the component that simulates the nodes.
	User = "devcluster:nodes"

	simulatedLabel = "devcluster.einmal.dev/simulated"
	kwokAnnotation = "kwok.x-k8s.io/node"
)

// Ensure creates the missing nodes among node-0 to node-(count-1) and deletes the
// nodes with higher numbers from earlier starts.
func Ensure(ctx context.Context, client kubernetes.Interface, count int) error {
	wanted := map[string]bool{}
	for i := range count {
		name := "node-" + strconv.Itoa(i)
		wanted[name] = true
		_, err := client.CoreV1().Nodes().Create(ctx, simulated(name), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	existing, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: simulatedLabel})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range existing.Items {
		if wanted[n.Name] {
			continue
		}
		err := client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete node %s: %w", n.Name, err)
		}
	}
	return nil
}

// AllReady returns an error that names a node that is not ready for Pods.
func AllReady(ctx context.Context, client kubernetes.Interface) error {
	all, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: simulatedLabel})
	if err != nil {
		return err
	}
	for _, n := range all.Items {
		if err := Ready(&n); err != nil {
			return err
		}
	}
	return nil
}

// Ready returns an error if a node is not ready for Pods.
func Ready(n *corev1.Node) error {
	for _, taint := range n.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return fmt.Errorf("node %s has the taint %s", n.Name, taint.Key)
		}
	}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("node %s is not ready: %s", n.Name, condition.Message)
		}
		if condition.Type == corev1.NodeReady {
			return nil
		}
	}
	return fmt.Errorf("node %s has not reported yet", n.Name)
}

func simulated(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("512Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("4Ti"),
		corev1.ResourcePods:             resource.MustParse("1000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: runtime.GOARCH,
				simulatedLabel:         "true",
			},
			Annotations: map[string]string{kwokAnnotation: "fake"},
		},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			NodeInfo: corev1.NodeSystemInfo{
				Architecture:            runtime.GOARCH,
				OperatingSystem:         "linux",
				KubeletVersion:          version.Get().GitVersion,
				ContainerRuntimeVersion: "simulated://",
				OSImage:                 "simulated",
			},
		},
	}
}

// Rules returns the permissions that User needs.
func Rules() []rbacv1.PolicyRule {
	all := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: append(all, "patch", "update")},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: append(all, "patch", "update", "delete")},
		{APIGroups: []string{""}, Resources: []string{"nodes/status", "pods/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			Verbs: append(all, "create", "patch", "update"),
		},
	}
}
