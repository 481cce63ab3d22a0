package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// stopping is how soon the handler looks again whether the server has stopped.
const stopping = time.Second

// erase ends what the garbage collector would leave. With the policy Retain this is a server whose StatefulSet was about to be created again. With the
// policy Delete it also deletes the volume and the passwords, in the order in which they are used.
func erase(ctx context.Context, c *change) error {
	pod, err := get(ctx, c, manifest.Pod(c.Object), &corev1.Pod{})
	if err != nil {
		return err
	}
	orphan := pod != nil && pod.Labels[manifest.NameLabel] == c.Object.Name && metav1.GetControllerOf(pod) == nil
	if orphan && pod.DeletionTimestamp == nil {
		return orElse(remove(ctx, c, pod), einmal.RequeueAfter(stopping))
	}
	if c.Object.Spec.DeletionPolicy != v1.DeletionDelete {
		return nil
	}
	if stopped, err := stop(ctx, c, pod); err != nil || !stopped {
		return orElse(err, einmal.RequeueAfter(stopping))
	}
	claim, err := get(ctx, c, manifest.Claim(c.Object), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	if claim != nil && claim.DeletionTimestamp == nil && claim.Labels[manifest.NameLabel] == c.Object.Name {
		if err := remove(ctx, c, claim); err != nil {
			return err
		}
	}
	secrets := credential.Secrets{Client: c.Client, Namespace: c.Object.Namespace}
	for _, name := range []string{manifest.AppSecret(c.Object), manifest.MonitorSecret(c.Object)} {
		if err := secrets.Delete(ctx, name, owner(c.Object)); err != nil {
			return err
		}
	}
	return nil
}

// stop deletes the StatefulSet, and reports whether its Pod is gone.
func stop(ctx context.Context, c *change, pod *corev1.Pod) (bool, error) {
	set, err := get(ctx, c, c.Object.Name, &appsv1.StatefulSet{})
	if err != nil {
		return false, err
	}
	if set != nil && metav1.IsControlledBy(set, c.Object) {
		if set.DeletionTimestamp == nil {
			c.Log.Info("deleting the server, its volume and its passwords, as deletionPolicy says")
			err = remove(ctx, c, set)
		}
		return false, err
	}
	return pod == nil || pod.Labels[manifest.NameLabel] != c.Object.Name, nil
}

// remove deletes exactly this object, and not another one of its name.
func remove(ctx context.Context, c *change, object client.Object, options ...client.DeleteOption) error {
	uid := object.GetUID()
	options = append(options, client.Preconditions{UID: &uid})
	if err := c.Client.Delete(ctx, object, options...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", kindOf(object), object.GetName(), err)
	}
	return nil
}
