package cluster_test

import (
	"context"
	"log/slog"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

const shopDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default, labels: {field: "yes"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "example.com/shop:1"}]}
`

// serveRollouts runs an operator that notes each image of Deployments.
func (w *world) serveRollouts(t *testing.T, said *fixture.Notes) (log *fixture.Log, stop func()) {
	t.Helper()
	log = fixture.NewLog(t)
	op := einmal.New("rollout.field.example.com", einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	deployments := einmal.For[appsv1.Deployment](op)
	mine := einmal.Labels("field", einmal.Equals("yes"))
	image := func(of *appsv1.Deployment) string { return of.Spec.Template.Spec.Containers[0].Image }
	deployments.OnCreate("register", func(_ context.Context, c *einmal.Change[appsv1.Deployment]) error {
		said.Add("registered %s", image(c.Object))
		return nil
	}, mine)
	deployments.OnUpdate("tell", func(_ context.Context, c *einmal.Change[appsv1.Deployment]) error {
		if old, known := c.Old(); known {
			said.Add("%s to %s", image(old), image(c.Object))
		}
		return nil
	}, mine, einmal.Fields("spec.template.spec.containers"))
	return log, fixture.Run(t, op, w.account, einmal.RunOptions{SingleReplica: true, HealthAddress: "0", MetricsAddress: "0"})
}

// kubectl rollout undo puts the annotations of an earlier revision back, and with them an older record. A running operator handles the change, and
// one that was stopped reports that the record may be older. See https://github.com/kubernetes/kubernetes/issues/23087.
func TestFieldRolloutUndoHidesNoChange(t *testing.T) {
	w := newWorld(t)
	w.account = w.Account(t, "rollout", rbacv1.PolicyRule{
		APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "patch"},
	}, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	said := &fixture.Notes{}
	_, stop := w.serveRollouts(t, said)
	revision := func(number string) {
		t.Helper()
		cluster.Until(t, "the Deployment has revision "+number, func() bool {
			return w.Kubectl(t, "", "get", "deployment", "shop", "-o", `jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}`) == number
		})
	}
	w.Kubectl(t, shopDeployment, "apply", "-f", "-")
	untilSaid(t, said, "registered example.com/shop:1")
	revision("1")
	w.Kubectl(t, "", "set", "image", "deployment/shop", "shop=example.com/shop:2")
	untilSaid(t, said, "example.com/shop:1 to example.com/shop:2")
	revision("2")
	w.Kubectl(t, "", "rollout", "undo", "deployment/shop")
	untilSaid(t, said, "example.com/shop:2 to example.com/shop:1")
	revision("3")
	stop()
	w.Kubectl(t, "", "rollout", "undo", "deployment/shop")
	log, stop := w.serveRollouts(t, said)
	w.untilEvent(t, "shop", "kubectl has written the record of this object")
	revision("4")
	w.Kubectl(t, "", "set", "image", "deployment/shop", "shop=example.com/shop:3")
	cluster.Until(t, "the handler runs for the third image", func() bool { return log.Count("msg~handler succeeded", "handler=tell") > 0 })
	stop()
	quiet, _ := w.serveRollouts(t, said)
	cluster.Until(t, "all is handled", func() bool { return quiet.Count("msg~watching") == 1 })
	if quiet.Count("msg~written by another client") > 0 {
		t.Error("the record is reported again after it was written")
	}
}
