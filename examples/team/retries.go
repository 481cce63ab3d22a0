package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
)

// declareRetries declares handlers that say what becomes of their failures.
func declareRetries(teams *einmal.Kind[team]) {
	// Tried for at most an hour, ten times, first after two seconds and later up to a minute apart.
	teams.OnCreate("await-office", awaitOffice,
		einmal.MaxAttempts(10), einmal.RetryFor(time.Hour), einmal.Backoff(2*time.Second, time.Minute))
	// What is nice to have counts as done when it fails.
	teams.OnCreate("greet", notify("Greeted"), einmal.OnError(einmal.PolicyIgnore))
	// A failure is not retried.
	teams.OnCreate("bill", bill, einmal.OnError(einmal.PolicyFail))
	// The handler had another name in an earlier release. A team goes even if this fails for good.
	teams.OnDelete("tidy", notify("TidiedUp"), einmal.FormerlyKnownAs("clean-up"), einmal.ReleaseOnFailure(), einmal.MaxAttempts(3))
}

// officeNamespace is where the offices of all teams are.
const officeNamespace = "default"

// awaitOffice waits for an object that another client creates. Waiting is not a failure, and it is recorded once.
func awaitOffice(ctx context.Context, c *change) error {
	var offices corev1.ConfigMapList
	err := c.Client.List(ctx, &offices, client.InNamespace(officeNamespace), client.MatchingLabels{"example.com/office": "open"})
	if err != nil {
		return err // It is tried again after a back-off.
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "OfficeIsOpen", Message: "The team has an office."}
	if len(offices.Items) == 0 {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NoOffice", "No ConfigMap has the label example.com/office=open."
	}
	ready.ObservedGeneration = c.Object.Generation
	meta.SetStatusCondition(&c.Object.Status.Conditions, ready)
	if len(offices.Items) == 0 {
		return einmal.RequeueAfter(10 * time.Second)
	}
	return nil
}

// bill asks whether it may have run before, since it cannot find out otherwise.
func bill(_ context.Context, c *change) error {
	if c.MaybeRepeated {
		c.Log.Warn("the team may have been billed already, check the invoices", "since", c.Started)
		return nil
	}
	c.Log.Info("billed")
	return nil
}
