package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// checkInterval is how often it is looked whether a backend can be used.
const checkInterval = 5 * time.Minute

// check tells in the condition Ready whether a backend can be reached, with the rights that are needed. It writes nothing there.
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

// reach asks each system of a backend.
func reach(ctx context.Context, held *backends, c *einmal.Change[v1.TenantBackend]) error {
	backend, release, err := held.use(ctx, c.Client, c.Object.Name)
	if err != nil {
		return err
	}
	defer release()
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
	return nil
}
