package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// checkInterval is how often it is looked whether a backend can be used.
const checkInterval = 5 * time.Minute

// check tells in the condition Ready whether a backend can be reached, with the rights that are needed, and in UsersSaved whether a Redis keeps its
// users. It changes nothing there.
func check(ctx context.Context, held *backends, c *einmal.Change[v1.TenantBackend]) error {
	err := reach(ctx, held, c)
	how, reason := classify(err)
	condition := metav1.Condition{
		Type: v1.ConditionReady, Status: verdict(how), Reason: reason, Message: "it can be reached, with the rights that are needed",
	}
	c.Object.Status.ObservedGeneration = c.Object.Generation
	if err == nil {
		condition.Reason = "Reached"
	} else {
		condition.Message = short(err)
	}
	if err := c.SetCondition(condition); err != nil {
		return err
	}
	if how == unknown {
		return err
	}
	if how != fine {
		return einmal.RetryAfter(blockedWait, nil)
	}
	return einmal.RetryAfter(checkInterval, nil)
}

// reach asks each system of a backend. It also tells in the condition ConnectionSecure how they are connected to.
func reach(ctx context.Context, held *backends, c *einmal.Change[v1.TenantBackend]) error {
	backend, release, err := held.use(ctx, c.Client, c.Object.Name)
	if err != nil {
		return err
	}
	defer release()
	if watched := backend.store.watch; watched != nil {
		if err := watched.trouble(); err != nil && !errors.Is(err, errWatchStarts) {
			c.Log.Warn("Secrets are not watched, so each look at a tenant is a full look", "error", err)
		}
	}
	if err := c.SetCondition(connectionSecure(backend.unverified)); err != nil {
		return err
	}
	if backend.databases != nil {
		if err := backend.databases.check(ctx); err != nil {
			return fmt.Errorf("spec.postgres: %w", err)
		}
	}
	if backend.cache != nil {
		if err := backend.cache.check(ctx); err != nil {
			return fmt.Errorf("spec.cache: %w", err)
		}
	}
	return usersSaved(ctx, backend.cache, c)
}

// usersSaved tells in the condition UsersSaved which nodes of a Redis forget their users when they restart.
func usersSaved(ctx context.Context, of cache, c *einmal.Change[v1.TenantBackend]) error {
	if c.Object.Spec.Cache == nil || c.Object.Spec.Cache.Redis == nil {
		meta.RemoveStatusCondition(&c.Object.Status.Conditions, v1.ConditionUsersSaved)
		return nil
	}
	forgetful, err := of.forgetful(ctx)
	if err != nil {
		return fmt.Errorf("spec.cache: %w", err)
	}
	condition := metav1.Condition{
		Type: v1.ConditionUsersSaved, Status: metav1.ConditionTrue, Reason: "Saved", Message: "each node saves its users",
	}
	if len(forgetful) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, "NoACLFile"
		condition.Message = fmt.Sprintf("no aclfile is set on %s: when such a node restarts, no tenant can log in there until the operator has made the users again",
			strings.Join(forgetful, ", "))
	}
	return c.SetCondition(condition)
}
