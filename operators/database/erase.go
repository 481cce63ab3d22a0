package main

import (
	"context"
	"errors"
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

// erase ends what the garbage collector would leave. With the policy Retain these are servers whose StatefulSet was about to be created again. With the
// policy Delete it also deletes the volumes and the passwords, in the order in which they are used.
func erase(ctx context.Context, c *change) error {
	left, err := leftPods(ctx, c)
	if err != nil {
		return err
	}
	if err := removeKeepFinalizers(ctx, c, left); err != nil {
		return err
	}
	if ending, err := endOrphans(ctx, c, left); err != nil || ending {
		return orElse(err, einmal.RequeueAfter(stopping))
	}
	if c.Object.Spec.DeletionPolicy != v1.DeletionDelete {
		return nil
	}
	if stopped, err := stop(ctx, c, left); err != nil || !stopped {
		return orElse(err, einmal.RequeueAfter(stopping))
	}
	for ordinal := range manifest.MostReplicas {
		if err := eraseClaim(ctx, c, manifest.Claim(manifest.Pod(c.Object, ordinal))); err != nil {
			return err
		}
	}
	if err := eraseClaim(ctx, c, manifest.Backup(c.Object)); err != nil {
		return err
	}
	return eraseSecrets(ctx, c)
}

// eraseSecrets deletes the passwords. A Secret of others that has the name of one was never used, and stays.
func eraseSecrets(ctx context.Context, c *change) error {
	secrets := credential.Secrets{Client: c.Client, Namespace: c.Object.Namespace}
	for _, name := range manifest.Secrets(c.Object) {
		err := secrets.Delete(ctx, name, owner(c.Object))
		if errors.Is(err, credential.ErrConflict) {
			c.Log.Info("left a Secret that does not belong to the Database", "secret", name)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endOrphans deletes the Pods that have no StatefulSet, and reports whether there was one.
func endOrphans(ctx context.Context, c *change, left []*corev1.Pod) (bool, error) {
	ending := false
	for _, pod := range left {
		if metav1.GetControllerOf(pod) != nil || pod.DeletionTimestamp != nil {
			continue
		}
		ending = true
		if err := remove(ctx, c, pod); err != nil {
			return ending, err
		}
	}
	return ending, nil
}

// eraseClaim deletes a claim and so its volume, if it belongs to the Database.
func eraseClaim(ctx context.Context, c *change, name string) error {
	claim, err := get(ctx, c, name, &corev1.PersistentVolumeClaim{})
	if err != nil || claim == nil || claim.DeletionTimestamp != nil ||
		claim.Labels[manifest.NameLabel] != c.Object.Name && claim.Labels[manifest.BackupOfLabel] != c.Object.Name {
		return err
	}
	return remove(ctx, c, claim)
}

// leftPods returns the Pods of the Database that exist.
func leftPods(ctx context.Context, c *change) ([]*corev1.Pod, error) {
	var left []*corev1.Pod
	for ordinal := range manifest.MostReplicas {
		pod, err := get(ctx, c, manifest.Pod(c.Object, ordinal), &corev1.Pod{})
		if err != nil {
			return nil, err
		}
		if pod != nil && pod.Labels[manifest.NameLabel] == c.Object.Name {
			left = append(left, pod)
		}
	}
	return left, nil
}

// stop deletes the StatefulSet, and reports whether its Pods are gone.
func stop(ctx context.Context, c *change, left []*corev1.Pod) (bool, error) {
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
	return len(left) == 0, nil
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
