package einmal_test

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
)

// deploySite makes a Deployment whose pods get the labels of their Website, and a ConfigMap that all Websites of the namespace own together:
// the garbage collector deletes it with the last one.
func deploySite(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
	site := map[string]string{"site": c.Object.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: site},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: site},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}},
			},
		},
	}
	if err := c.Apply(ctx, deployment, einmal.NestedLabels("spec.template")); err != nil {
		return err
	}
	defaults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "site-defaults"}, Data: map[string]string{"theme": "light"}}
	return c.Apply(ctx, defaults, einmal.NotController(), einmal.Adopt())
}

// Options of Apply copy labels into a pod template, and let several objects own one child.
func ExampleNestedLabels() {
	op := einmal.New("sites.example.com", einmal.Applies(&appsv1.Deployment{}, &corev1.ConfigMap{}))
	einmal.For[corev1.ConfigMap](op).Reconcile("deploy", deploySite, einmal.Labels("kind", einmal.Equals("site")))
	fmt.Println("deployed at each change of the object")
	// Output: deployed at each change of the object
}

// copyLabels makes a Secret with some labels of its owner, a ConfigMap with all but tracking labels, and a ServiceAccount with these too. The tool that
// manages the owner can then delete the ServiceAccount.
func copyLabels(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}}
	if err := c.Apply(ctx, secret, einmal.CopyLabels("team", "billing.example.com/*")); err != nil {
		return err
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name + "-settings"}}
	if err := c.Apply(ctx, settings, einmal.CopyLabels("*")); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}}
	return c.Apply(ctx, account, einmal.CopyLabels("*"), einmal.CopyTrackingLabels())
}

// Labels of the owner reach a child only if an option names them.
func ExampleCopyLabels() {
	op := einmal.New("accounts.example.com", einmal.Applies(&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.ServiceAccount{}))
	einmal.For[corev1.ConfigMap](op).Reconcile("labels", copyLabels, einmal.Labels("kind", einmal.Equals("account")))
	fmt.Println("labeled at each change of the object")
	// Output: labeled at each change of the object
}

// deployServer makes a Deployment whose replicas another client sets, such as an autoscaler. A field that Apply has never set stays as others set it. The
// Deployment and the ConfigMap are applied on their own, so that one that is refused does not hold up the other.
func deployServer(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
	server := map[string]string{"server": c.Object.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name},
		Spec: appsv1.DeploymentSpec{ // No Replicas.
			Selector: &metav1.LabelSelector{MatchLabels: server},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: server},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: c.Object.Data["image"]}}},
			},
		},
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name + "-settings"}, Data: map[string]string{"level": "info"}}
	return errors.Join(c.Apply(ctx, deployment), c.Apply(ctx, settings))
}

// An autoscaler sets the replicas of a child. The operator sets the other fields.
func ExampleChange_Apply_fieldsOfOthers() {
	op := einmal.New("servers.example.com", einmal.Applies(&appsv1.Deployment{}, &corev1.ConfigMap{}))
	einmal.For[corev1.ConfigMap](op).Reconcile("deploy", deployServer, einmal.Labels("kind", einmal.Equals("server")))
	fmt.Println("deployed without replicas")
	// Output: deployed without replicas
}

// A handler decides by an existing Deployment. It does so only if the Deployment belongs to its object, as Apply sees it.
func ExampleChange_CheckOwner() {
	op := einmal.New("servers.example.com", einmal.Applies(&appsv1.Deployment{}), einmal.Permissions(&appsv1.Deployment{}, "get"))
	keepReplicas := func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
		existing := &appsv1.Deployment{}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(c.Object), existing)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err := errors.Join(err, c.CheckOwner(existing)); err != nil {
			return err
		}
		c.Log.Info("the Deployment belongs to the ConfigMap", "replicas", existing.Status.Replicas)
		return nil
	}
	einmal.For[corev1.ConfigMap](op).Reconcile("look", keepReplicas, einmal.Labels("kind", einmal.Equals("server")))
	fmt.Println("a Deployment of others is an error")
	// Output: a Deployment of others is an error
}
