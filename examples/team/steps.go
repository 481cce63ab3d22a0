package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
)

// declareSteps declares a handler whose parts are remembered, and one that deletes what it has made.
func declareSteps(teams *einmal.Kind[team]) {
	teams.OnCreate("seat", seat, einmal.Concurrency(4))
	teams.Reconcile("clear-seats", clearSeats, einmal.Prunes[corev1.ServiceAccount]())
}

// floor is what a step gives: where the team sits.
type floor struct {
	Number int `json:"number"`
}

// seat gives each member a seat. If one is refused, the handler is tried again, and makes only what is not done yet.
func seat(ctx context.Context, c *change) error {
	where, err := einmal.StepResult(ctx, c, "floor", func(context.Context) (floor, error) {
		return floor{Number: 1 + len(c.Object.Name)%10}, nil
	})
	if err != nil {
		return err
	}
	err = einmal.Step(ctx, c, "members", func(ctx context.Context) error {
		return einmal.Each(ctx, c, c.Object.Spec.Members, strings.ToLower, func(ctx context.Context, member string) error {
			return c.Apply(ctx, place(c, member))
		})
	})
	if err != nil {
		return err
	}
	return einmal.Step(ctx, c, "sign", func(ctx context.Context) error {
		sign := &corev1.ConfigMap{Data: map[string]string{"text": fmt.Sprintf("%s is on floor %d", c.Object.Name, where.Number)}}
		sign.Name = "sign-of-" + c.Object.Name
		return c.Apply(ctx, sign, einmal.Adopt()) // A sign that hung there before the team came is taken over.
	})
}

// place is the seat of a member.
func place(c *change, member string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.Object.Namespace, Name: c.Object.Name + "-" + strings.ToLower(member),
	}}
}

// clearSeats deletes the seats of members who have left the team.
func clearSeats(ctx context.Context, c *change) error {
	var wanted []string
	for _, member := range c.Object.Spec.Members {
		wanted = append(wanted, place(c, member).Name)
	}
	return c.Prune(ctx, &corev1.ServiceAccount{}, wanted...)
}
