package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// checkInterval is how often a backend is checked.
const checkInterval = 5 * time.Minute

// check sets the conditions of a TenantBackend. Ready is True if PostgreSQL and the cache answer and grant the rights that can be tested
// without a write. The credential store is not queried: only reconciling a Tenant shows whether it works.
func check(ctx context.Context, held *backends, c *einmal.Change[v1.TenantBackend]) error {
	err := reach(ctx, held, c)
	how, reason := classify(err)
	condition := metav1.Condition{
		Type: v1.ConditionReady, Status: verdict(how), Reason: reason, Message: "PostgreSQL and the cache passed their checks; the credential store is not checked",
	}
	c.Object.Status.ObservedGeneration = c.Object.Generation
	if err == nil {
		condition.Reason = "Reached"
	} else {
		condition.Message = short(err)
	}
	setCondition(c, condition)
	if how == unknown {
		return err
	}
	if how != fine {
		return einmal.RequeueAfter(blockedWait)
	}
	if saved := meta.FindStatusCondition(c.Object.Status.Conditions, v1.ConditionUsersSaved); saved != nil && saved.Reason == reasonUnsaved {
		return einmal.RequeueAfter(blockedWait)
	}
	return einmal.RequeueAfter(checkInterval)
}

// reach queries the database server and the cache of a backend. It also sets the condition ConnectionSecure.
func reach(ctx context.Context, held *backends, c *einmal.Change[v1.TenantBackend]) error {
	backend, release, err := held.use(ctx, c.Client, c.Object.Name)
	if err != nil {
		return err
	}
	defer release()
	if watched := backend.store.watch; watched != nil {
		if err := watched.trouble(); err != nil && !errors.Is(err, errWatchStarts) {
			c.Log.Warn("Secrets are not watched, every tenant check is a full check", "error", err)
		}
	}
	setCondition(c, connectionSecure(backend.unverified))
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

// usersSaved sets the condition UsersSaved: it is False if Redis nodes lose users or changes in a restart.
func usersSaved(ctx context.Context, of cache, c *einmal.Change[v1.TenantBackend]) error {
	if c.Object.Spec.Cache == nil || c.Object.Spec.Cache.Redis == nil {
		meta.RemoveStatusCondition(&c.Object.Status.Conditions, v1.ConditionUsersSaved)
		return nil
	}
	forgetful, err := of.forgetful(ctx)
	condition := metav1.Condition{
		Type: v1.ConditionUsersSaved, Status: metav1.ConditionTrue, Reason: "Saved", Message: "all nodes save their users",
	}
	switch {
	case errors.Is(err, redis.ErrUnsaved):
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonUnsaved
		condition.Message = "after a restart, such a node accepts again what was taken away: " + err.Error()
	case err != nil:
		return fmt.Errorf("spec.cache: %w", err)
	case len(forgetful) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, "NoACLFile"
		condition.Message = fmt.Sprintf("no aclfile is set on %s: after a restart, tenants cannot log in to such a node until the operator has created the users again",
			strings.Join(forgetful, ", "))
	}
	setCondition(c, condition)
	return nil
}

// notSaved returns the backend of a Tenant whose users a node could not save, so that the backend is checked at once.
func notSaved(of *v1.Tenant) []types.NamespacedName {
	if synced := meta.FindStatusCondition(of.Status.Conditions, v1.ConditionInSync); synced == nil || synced.Reason != reasonUnsaved {
		return nil
	}
	return []types.NamespacedName{{Name: of.Spec.BackendRef.Name}}
}

// setCondition sets a condition of a TenantBackend.
func setCondition(c *einmal.Change[v1.TenantBackend], condition metav1.Condition) {
	condition.ObservedGeneration = c.Object.Generation
	meta.SetStatusCondition(&c.Object.Status.Conditions, condition)
}
