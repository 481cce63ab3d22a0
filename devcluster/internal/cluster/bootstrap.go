package cluster

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/einmal-operators/einmal/devcluster/internal/dns"
	"github.com/einmal-operators/einmal/devcluster/internal/node"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
	"github.com/einmal-operators/einmal/devcluster/internal/volume"
)

// bootstrap creates the initial objects of a cluster: the permissions of the
// components that are not part of Kubernetes, the default storage class and the
// nodes.
func bootstrap(ctx context.Context, client kubernetes.Interface, o Options) error {
	for user, rules := range map[string][]rbacv1.PolicyRule{
		node.User:   node.Rules(),
		volume.User: volume.Rules(),
	} {
		if err := grant(ctx, client, user, rules); err != nil {
			return fmt.Errorf("grant permissions to %s: %w", user, err)
		}
	}
	_, err := client.StorageV1().StorageClasses().Create(ctx, volume.Class(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create storage class: %w", err)
	}
	if err := node.Ensure(ctx, client, o.Nodes); err != nil {
		return err
	}
	if o.RealNode {
		return bootstrapNode(ctx, client)
	}
	// The node of an earlier start with a real one would never be ready.
	err = client.CoreV1().Nodes().Delete(ctx, realnode.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", realnode.Name, err)
	}
	return nil
}

// bootstrapNode creates the objects that a real node needs.
func bootstrapNode(ctx context.Context, client kubernetes.Interface) error {
	if err := bind(ctx, client, "system:node-proxier", "system:kube-proxy"); err != nil {
		return err
	}
	if err := grant(ctx, client, dns.User, dns.Rules()); err != nil {
		return fmt.Errorf("grant permissions to %s: %w", dns.User, err)
	}
	return dns.EnsureService(ctx, client, realnode.DNSAddress, realnode.Address)
}

// grant grants a user the permissions in the whole cluster.
func grant(ctx context.Context, client kubernetes.Interface, user string, rules []rbacv1.PolicyRule) error {
	// Names with a colon, such as system:node, are reserved for Kubernetes.
	meta := metav1.ObjectMeta{Name: strings.ReplaceAll(user, ":", "-")}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	return bind(ctx, client, role.Name, user)
}

// bind gives a user the permissions of a role in the whole cluster.
func bind(ctx context.Context, client kubernetes.Interface, role, user string) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(user, ":", "-")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
