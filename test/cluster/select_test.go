package cluster_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Kinds that were unknown when the operator was built, with exactly the permissions that the command rbac prints.
func TestChosenKindsOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("everything is handled once, but not what is said about it (scenario 87)", w.everythingOnce)
	t.Run("records are not mixed up with those of owners, which are copied", w.ownersRecords)
	t.Run("the watch moves to the version that is preferred, and out of a category (scenario 83)", w.versionMoves)
	t.Run("an ambiguous name is reported, and served when one kind is left (scenario 86)", w.ambiguousName)
}

// choosing runs an operator with the rights that it asks for itself.
func (w *world) choosing(t *testing.T, declare func(*einmal.Operator)) (stop func(), log *fixture.Log, health string) {
	t.Helper()
	log, health = fixture.NewLog(t), cluster.FreeAddress(t)
	logger := slog.New(slog.NewTextHandler(log, nil))
	op := einmal.New(fixture.Identity, einmal.StateNamespace("default"), einmal.Logger(logger))
	declare(op)
	rights := hook.Of().Observe(op, nil, logger).Rights
	account := w.Account(t, "choosing-"+strings.ToLower(rand.Text()[:6]), slices.Concat(rights.ClusterWide, rights.Served, rights.AtHome)...)
	stop = fixture.Run(t, op, account, einmal.RunOptions{SingleReplica: true, HealthAddress: health})
	return stop, log, "http://" + health + "/readyz?verbose"
}

func (w *world) everythingOnce(t *testing.T) {
	j := &fixture.Journal{}
	stop, _, health := w.choosing(t, func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Everything: true})
		every.Reconcile("look", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			c.Event(einmal.EventNormal, "LookedAt", "It is %s now.", c.Object.GetResourceVersion())
			j.Add(fmt.Sprintf("%s %s/%s", c.Object.GroupVersionKind(), c.Object.GetNamespace(), c.Object.GetName()), "look")
			return nil
		}, einmal.When(func(of *unstructured.Unstructured) bool { return of.GetKind() != "Lease" })) // Those change all the time.
	})
	answers(t, health, http.StatusOK, "ok")
	looked, quiet := 0, time.Now()
	cluster.Until(t, "everything was looked at", func() bool {
		if now := len(j.All()); now != looked {
			looked, quiet = now, time.Now()
		}
		return looked > 100 && time.Since(quiet) > 3*time.Second
	})
	t.Logf("%d objects were looked at", looked)
	if i := slices.IndexFunc(j.All(), func(call string) bool {
		return strings.Contains(call, "Kind=Event") || strings.Contains(call, "/"+fixture.Identity+":")
	}); i >= 0 {
		t.Errorf("called: %s", j.All()[i])
	}
	if said := w.Kubectl(t, "", "get", "events", "--all-namespaces", "--field-selector", "reason=LookedAt"); strings.Count(said, "\n") < 100 {
		t.Errorf("of %d objects these events tell:\n%s", looked, said)
	}
	stop()
}

// ownersRecords handles Deployments and their ReplicaSets, which get the annotations of their owner.
func (w *world) ownersRecords(t *testing.T) {
	j := &fixture.Journal{}
	all := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Category: "all", Group: "apps"})
		every.OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			j.Add("one", "make "+c.Object.GetKind())
			return nil
		})
		every.OnResume("greet", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			j.Add("two", "greet "+c.Object.GetKind())
			return nil
		})
	}
	bothMade := func() bool { // Each kind has a watch of its own, so either can come first.
		made := j.Of("one")
		slices.Sort(made)
		return slices.Equal(made, []string{"make Deployment", "make ReplicaSet"})
	}
	stop, _, health := w.choosing(t, all)
	answers(t, health, http.StatusOK, "ok")
	w.Kubectl(t, "", "create", "deployment", "web", "--image=example.org/web", "--replicas=1")
	cluster.Until(t, "both are made", bothMade)
	w.Kubectl(t, "", "scale", "deployment", "web", "--replicas=2")
	w.Kubectl(t, "", "rollout", "status", "deployment", "web")
	stop()
	_, log, _ := w.choosing(t, all)
	cluster.Until(t, "both are resumed", func() bool { return len(j.Of("two")) == 2 })
	if !bothMade() {
		t.Errorf("create handlers ran again: %q", j.Of("one"))
	}
	if log.Count("msg=seen for the first time") > 0 {
		t.Error("the record of the owner is taken for its own")
	}
	if log.Count("msg~another client has written the record") > 0 {
		t.Error("the record that a ReplicaSet has from its owner counts as written by another client")
	}
}

// versionMoves changes the definition of a kind under an operator that handles it.
func (w *world) versionMoves(t *testing.T) {
	j := &fixture.Journal{}
	note := func(id string) einmal.HandlerFunc[unstructured.Unstructured] {
		return func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			j.Add(c.Object.GetName(), id+" "+c.Object.GetAPIVersion())
			return nil
		}
	}
	_, log, health := w.choosing(t, func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Category: "tests"})
		every.OnCreate("make", note("make"))
		every.OnUpdate("change", note("change"))
		every.OnResume("greet", note("greet"))
	})
	answers(t, health, http.StatusOK, "ok")
	definition := fixture.DefineThings("moves.dev", "categories: [tests]", "v1beta1")
	w.install(t, definition)
	w.createSoon(t, fixture.NewThing("moves.dev/v1beta1", "one"))
	untilCalled(t, j, "make moves.dev/v1beta1")
	w.redefine(t, definition, func(u *unstructured.Unstructured) { fixture.AddVersion(u, "v1") })
	cluster.Until(t, "the watch has moved", func() bool { return log.Count("kind=Thing", "apiVersion=moves.dev/v1") > 0 })
	answers(t, health, http.StatusOK, "ok")
	w.resize(t, fixture.NewThing("moves.dev/v1beta1", "one"), 2)
	untilCalled(t, j, "make moves.dev/v1beta1", "change moves.dev/v1")
	w.redefine(t, definition, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "names", "categories")
	})
	cluster.Until(t, "the kind has left the category", func() bool { return log.Count("msg~kind no longer matches ForEvery") > 0 })
	w.resize(t, fixture.NewThing("moves.dev/v1", "one"), 3)
	w.redefine(t, definition, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(u.Object, []string{"tests"}, "spec", "names", "categories")
	})
	untilCalled(t, j, "make moves.dev/v1beta1", "change moves.dev/v1", "change moves.dev/v1")
}

// ambiguousName takes a short name that two definitions have.
func (w *world) ambiguousName(t *testing.T) {
	j := &fixture.Journal{}
	first, second := fixture.DefineThings("first.dev", "shortNames: [th]", "v1"), fixture.DefineThings("second.dev", "shortNames: [th]", "v1")
	w.install(t, first, second)
	w.createSoon(t, fixture.NewThing("first.dev/v1", "one"))
	_, log, health := w.choosing(t, func(op *einmal.Operator) {
		einmal.ForEvery(op, einmal.Selector{Name: "th"}).OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			j.Add(c.Object.GetName(), c.Object.GetAPIVersion())
			return nil
		})
	})
	cluster.Until(t, "the name is reported", func() bool { return strings.Contains(log.String(), "are ambiguous") })
	answers(t, health, http.StatusInternalServerError, "failed")
	if calls := j.All(); len(calls) > 0 {
		t.Errorf("called: %q", calls)
	}
	w.Kubectl(t, "", "delete", "crd", second.GetName())
	answers(t, health, http.StatusOK, "ok")
	untilCalled(t, j, "first.dev/v1")
}

func untilCalled(t *testing.T, j *fixture.Journal, want ...string) {
	t.Helper()
	cluster.Eventually(t, "the calls", func(context.Context) error {
		if got := j.Of("one"); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

func (w *world) install(t *testing.T, definitions ...*unstructured.Unstructured) {
	t.Helper()
	for _, definition := range definitions {
		if err := w.Create(t.Context(), definition.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		w.Kubectl(t, "", "wait", "--for=condition=Established", "crd", definition.GetName())
	}
}

// createSoon creates an object of a kind that is new.
func (w *world) createSoon(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	cluster.Eventually(t, "create "+object.GetName(), func(ctx context.Context) error { return w.Create(ctx, object.DeepCopy()) })
}

// redefine changes a definition.
func (w *world) redefine(t *testing.T, definition *unstructured.Unstructured, to func(*unstructured.Unstructured)) {
	t.Helper()
	cluster.Eventually(t, "change "+definition.GetName(), func(ctx context.Context) error {
		found := definition.DeepCopy()
		if err := w.Get(ctx, client.ObjectKeyFromObject(definition), found); err != nil {
			return err
		}
		to(found)
		return w.Update(ctx, found)
	})
}

func (w *world) resize(t *testing.T, object *unstructured.Unstructured, size int) {
	t.Helper()
	merge := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, size))
	if err := w.Patch(t.Context(), object, merge); err != nil {
		t.Fatal(err)
	}
}
