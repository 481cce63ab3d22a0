package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

func (w *world) twoHandlersOneStatus(t *testing.T) {
	account := w.Account(t, "tenants",
		rbacv1.PolicyRule{
			APIGroups: []string{fixture.Group}, Resources: []string{"tenants", "tenants/status"}, Verbs: []string{"get", "list", "watch", "patch"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	log := fixture.NewLog(t)
	op := einmal.New(fixture.Identity, einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	other := fixture.Others{Client: w.Client}
	fixture.TwoWriters(op, func() fixture.Others { return other })
	stop := w.run(t, op, account)
	fixture.ExpectNothingLost(t.Context(), t, other, func(plan string) {
		cluster.Eventually(t, "the plan "+plan, func(ctx context.Context) error {
			found, err := other.StatusOf(ctx, "acme")
			if err == nil && found["plan"] != plan {
				err = fmt.Errorf("it is %v", found["plan"])
			}
			return err
		})
	}, func() {
		cluster.Until(t, "the mistake of a handler", func() bool { return log.Count(fixture.ProgrammingError) > 0 })
	})
	stop()
	fixture.ExpectMistakeLogged(t, log)
}
