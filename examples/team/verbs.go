package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
)

// declareVerbs declares a handler for each thing that can happen to a team.
func declareVerbs(op *einmal.Operator, teams *einmal.Kind[team]) {
	teams.OnCreate("open-account", openAccount, einmal.OwnsStatus("account"))
	teams.OnUpdate("retitle", retitle, einmal.Fields("spec.title"))
	einmal.OnField(teams, "set-seats", "spec.plan", setSeats, einmal.AlsoAtCreation(), einmal.OwnsStatus("plan", "seats"))
	teams.OnDelete("close-account", closeAccount)
	teams.OnDelete("wave", wave, einmal.WithoutFinalizer())
	teams.OnResume("look-in", lookIn, einmal.AlsoAtDeletion())
	teams.OnEvent("count", count)
	teams.Reconcile("roster", keepRoster, einmal.Fields("spec.members"), einmal.Fields("metadata.labels"),
		einmal.Owns[corev1.ConfigMap](), einmal.Watches(concerned(indexMembers(op))))
}

// account is where the books of a team are. It has no owner, since it is closed by a handler, not by the garbage collector.
func account(c *change) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: "account-of-" + c.Object.Name}}
}

// openAccount runs once for each team. Its name makes a second run harmless: it finds the account of the first.
func openAccount(ctx context.Context, c *change) error {
	books := account(c)
	books.Data = map[string]string{"opened-for": c.Object.Name}
	if err := c.Client.Create(ctx, books); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	c.Object.Status.Account = books.Name
	c.Event(einmal.EventNormal, "AccountOpened", "The books are in %s.", books.Name)
	return nil
}

// retitle runs when the title differs from the one that it last saw. The first title is part of the creation.
func retitle(_ context.Context, c *change) error {
	if old, known := c.Old(); known {
		c.Log.Info("the team has another title", "before", old.Spec.Title, "differences", len(c.Diff))
	}
	c.Object.Status.Title = strings.ToUpper(c.Object.Spec.Title)
	return nil
}

// setSeats gets the plan as it was and as it is. At creation, which is asked for, it was "".
func setSeats(_ context.Context, c *change, before, now string) error {
	seats := map[string]int{"": 1, "trial": 1, "small": 10, "large": 100}
	if _, known := seats[now]; !known {
		return einmal.Permanent(fmt.Errorf("spec.plan: there is no plan %q: choose trial, small or large", now))
	}
	c.Log.Info("the plan is another one", "before", before, "now", now)
	c.Object.Status.Plan, c.Object.Status.Seats = now, seats[now]
	return nil
}

// closeAccount runs before a team goes: the operator's finalizer keeps it until then.
func closeAccount(ctx context.Context, c *change) error {
	return client.IgnoreNotFound(c.Client.Delete(ctx, account(c)))
}

// wave runs if the deletion is seen. It does not delay the deletion.
func wave(_ context.Context, c *change) error {
	c.Log.Info("goodbye")
	return nil
}

// lookIn runs in each process for teams that earlier ones have handled, also for those that are being deleted.
func lookIn(_ context.Context, c *change) error {
	c.Log.Info("still here", "being deleted", c.Object.DeletionTimestamp != nil)
	return nil
}

// events is what this process remembers of a team: nothing of it is stored.
type events struct{ seen int }

// count is called for each event, whatever it is about.
func count(_ context.Context, c *change) error {
	einmal.Memo[events](c).seen++
	c.Log.Debug("an event", "what", c.Reason, "number", einmal.Memo[events](c).seen)
	return nil
}

// keepRoster brings the roster to the desired state, whatever it was. It needs no change to run, and runs again in each process.
func keepRoster(ctx context.Context, c *change) error {
	roster := &corev1.ConfigMap{Data: map[string]string{"members": strings.Join(slices.Sorted(slices.Values(c.Object.Spec.Members)), "\n")}}
	roster.Name = "roster-of-" + c.Object.Name
	for _, by := range c.TriggeredBy {
		c.Log.Info("looking after the roster", "because", by.String()) // Such as: ConfigMap default/roster-of-blue deleted.
	}
	return c.Apply(ctx, roster) // Its owner is the team, so it goes with it.
}

// indexMembers finds the teams of a member.
func indexMembers(op *einmal.Operator) *einmal.Lookup[string, types.NamespacedName] {
	return einmal.Index(op, "teams-by-member", func(t *team) (map[string]types.NamespacedName, error) {
		found := map[string]types.NamespacedName{}
		for _, member := range t.Spec.Members {
			found[member] = types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
		}
		return found, nil
	})
}

// concerned lists the teams whom a ConfigMap concerns: all that have the member whom it is about.
func concerned(members *einmal.Lookup[string, types.NamespacedName]) func(*corev1.ConfigMap) []types.NamespacedName {
	return func(about *corev1.ConfigMap) []types.NamespacedName {
		return members.Get(about.Labels["example.com/member"])
	}
}
