package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// wrongShops are manifests that do not fit the Go type, by name.
func wrongShops() map[string]string {
	return map[string]string{
		"bad-word": "{replicas: three}", "bad-overflow": "{replicas: 3000000000}", "bad-fraction": "{replicas: 1.5}", "bad-number": "{name: 5}",
		"bad-quantity": "{size: lots}", "bad-time": "{opens: yesterday}", "bad-spec": "text",
	}
}

func shopManifest(name, spec string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: Shop\nmetadata: {name: %s, namespace: default}\nspec: %s\n---\n", fixture.ShopVersion, name, spec)
}

// Of twenty good and seven bad objects of a kind without a schema, the good ones are handled, and each bad one is reported. They become good
// and bad again while the operator runs. See https://github.com/kubernetes-sigs/controller-runtime/issues/2591.
func TestFieldWrongTypesStopNoOtherObject(t *testing.T) {
	w := newFieldWorld(t, "Shop", "shops")
	manifests, want := strings.Builder{}, []string(nil)
	for i := range 20 {
		name := fmt.Sprintf("good-%02d", i)
		want = append(want, "open "+name)
		manifests.WriteString(shopManifest(name, "{replicas: 1}"))
	}
	for name, spec := range wrongShops() {
		manifests.WriteString(shopManifest(name, spec))
	}
	w.Kubectl(t, manifests.String(), "apply", "-f", "-")
	said := &fixture.Notes{}
	log, health, shown := w.serveShops(t, said)
	untilSaid(t, said, want...)
	metric := func(count int) {
		t.Helper()
		answers(t, shown, http.StatusOK, fmt.Sprintf(`einmal_objects_undecodable{kind="Shop.field.example.com",operator=%q} %d`, fixture.ShopsOperator, count))
		answers(t, health, http.StatusOK, "ok")
	}
	metric(len(wrongShops()))
	for name := range wrongShops() {
		cluster.Until(t, "the log names "+name, func() bool { return log.Count("object=default/"+name, "error~cannot decode field spec") == 1 })
		w.untilEvent(t, name, "cannot decode field spec")
	}
	w.Kubectl(t, "", "patch", "shop", "good-00", "--type=merge", "-p", `{"spec":{"replicas":"many"}}`)
	metric(len(wrongShops()) + 1)
	w.Kubectl(t, shopManifest("good-20", "{replicas: 1}"), "apply", "-f", "-")
	untilSaid(t, said, "open good-20")
	w.Kubectl(t, "", "patch", "shop", "bad-word", "--type=merge", "-p", `{"spec":{"replicas":3}}`)
	w.Kubectl(t, "", "patch", "shop", "good-00", "--type=merge", "-p", `{"spec":{"replicas":2}}`)
	untilSaid(t, said, "open bad-word", "refit good-00")
	w.Kubectl(t, "", "patch", "shop", "good-01", "--type=merge", "--subresource=status", "-p", `{"status":{"seen":["x"]}}`)
	w.Kubectl(t, "", "delete", "shop", "bad-time", "--wait")
	metric(len(wrongShops()) - 1)
	w.Kubectl(t, "", "delete", "shop", "good-01", "--wait=false")
	w.untilEvent(t, "good-01", "set the annotation shops.field.example.com/release to *")
	w.Kubectl(t, "", "annotate", "shop", "good-01", "shops.field.example.com/release=*")
	w.Kubectl(t, "", "wait", "--for=delete", "shop/good-01")
	metric(len(wrongShops()) - 2)
	untilSaid(t, said)
}

// newFieldWorld is a cluster with a kind that accepts everything, and an account that may handle it.
func newFieldWorld(t *testing.T, kind, resource string) *world {
	t.Helper()
	return fieldWorldOf(t, fixture.DefineFreeKind(kind), resource)
}

// fieldWorldOf is newFieldWorld with a definition of its own. The account may also write ConfigMaps.
func fieldWorldOf(t *testing.T, definition, resource string) *world {
	t.Helper()
	w := newWorld(t)
	w.Kubectl(t, definition, "apply", "-f", "-")
	w.Kubectl(t, definition, "wait", "--for=condition=Established", "-f", "-")
	w.account = w.Account(t, resource, rbacv1.PolicyRule{
		APIGroups: []string{"field.example.com"}, Resources: []string{resource, resource + "/status"}, Verbs: []string{"get", "list", "watch", "patch"},
	}, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
	}, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "update"},
	})
	return w
}

// serveShops runs the operator of shops.
func (w *world) serveShops(t *testing.T, said *fixture.Notes) (log *fixture.Log, health, shown string) {
	t.Helper()
	log, health, shown = fixture.NewLog(t), cluster.FreeAddress(t), cluster.FreeAddress(t)
	op := einmal.New(fixture.ShopsOperator, einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	kind := einmal.For[fixture.Shop](op, einmal.GVK("field.example.com", "v1", "Shop"))
	note := func(what string) einmal.HandlerFunc[fixture.Shop] {
		return func(_ context.Context, c *einmal.Change[fixture.Shop]) error {
			said.Add("%s %s", what, c.Object.Name)
			c.Object.Status.Seen = what
			return nil
		}
	}
	kind.OnCreate("open", note("open"))
	kind.OnUpdate("refit", note("refit"), einmal.Fields("spec"))
	kind.OnDelete("close", note("close"))
	fixture.Run(t, op, w.account, einmal.RunOptions{SingleReplica: true, HealthAddress: health, MetricsAddress: shown})
	return log, "http://" + health + "/readyz?verbose", "http://" + shown + "/metrics"
}

// untilEvent waits until an event about an object of that name contains these words.
func (w *world) untilEvent(t *testing.T, name, words string) {
	t.Helper()
	cluster.Until(t, "an event about "+name+" says "+words, func() bool {
		return strings.Contains(w.Kubectl(t, "", "get", "events", "--field-selector", "involvedObject.name="+name, "-o", "jsonpath={.items[*].message}"), words)
	})
}
