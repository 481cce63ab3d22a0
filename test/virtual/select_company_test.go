package virtual_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

func plainOf(kind, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetAPIVersion("v1")
	made.SetKind(kind)
	made.SetNamespace("default")
	made.SetName(name)
	return made
}

// A kind that For and ForEvery select, or two ForEvery, is served once, with one record.
func TestAKindThatIsChosenTwiceIsServedOnce(t *testing.T) {
	declare := func(op *einmal.Operator) {
		einmal.ForEvery(op, einmal.Selector{Category: "tests"}).OnCreate("first", fixture.Nothing[unstructured.Unstructured])
		einmal.For[fixture.Widget](op).OnCreate("own", fixture.Nothing[fixture.Widget])
		second := einmal.ForEvery(op, einmal.Selector{Name: "things"})
		second.OnCreate("second", fixture.Nothing[unstructured.Unstructured])
		einmal.ForEvery(op, einmal.Selector{Everything: true, Group: fixture.Group}).OnCreate("third", fixture.Nothing[unstructured.Unstructured])
		einmal.ForEvery(op, einmal.Selector{Name: "things", Version: "v1"}).OnCreate("older", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since := 0
		w.create(fixture.DefineThings("a.dev", "categories: [tests]", "v2", "v1"), fixture.NewThing("a.dev/v1", "one"))
		if err := w.User.Create(w.t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.create(fixture.NewGadget("one", 1))
		w.Pass(time.Minute)
		w.called(&since, "first of a.dev/v2 one (create)", "own of test.einmal.dev/v1 one (create)", "second of a.dev/v2 one (create)", "third of test.einmal.dev/v1 one (create)")
		w.says("msg~kind has its own For registration", 1)
		w.says("msg~kind is served in another version for an earlier ForEvery", 1)
		if writes := w.Writes(); len(writes) != 3+1 { // The gadget has an annotation beside its status.
			t.Logf("writes: %v", writes)
		}
		w.is("")
	})
}

// Handlers are never called for the operator's own objects: its watermarks, its key, its Lease.
func TestTheOperatorsOwnObjectsAreNotHandled(t *testing.T) {
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Everything: true})
		every.OnCreate("make", fixture.Nothing[unstructured.Unstructured])
		every.OnEvent("watch", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		secret := plainOf("Secret", "theirs")
		_ = unstructured.SetNestedStringMap(secret.Object, map[string]string{"password": "hunter2"}, "stringData")
		w.create(plainOf("ConfigMap", "theirs"), secret)
		w.Pass(15 * time.Minute)
		handled := map[string]int{}
		for _, call := range w.Calls() {
			handled[call.Kind.Kind+" "+call.Object.Name]++
		}
		lease := plainOf("Lease", fixture.Identity)
		lease.SetAPIVersion("coordination.k8s.io/v1")
		for _, own := range []*unstructured.Unstructured{plainOf("ConfigMap", fixture.Identity), plainOf("Secret", fixture.Identity), lease} {
			if err := w.User.Get(w.t.Context(), client.ObjectKeyFromObject(own), own); err != nil {
				t.Errorf("it was not tested with %s: %v", own.GetKind(), err)
			}
			if n := handled[own.GetKind()+" "+fixture.Identity]; n > 0 {
				t.Errorf("%s %s was handled %d times", own.GetKind(), fixture.Identity, n)
			}
		}
		if handled["ConfigMap theirs"] == 0 || handled["Secret theirs"] == 0 {
			t.Errorf("handled: %v", handled)
		}
		w.holdsDigests(secret)
	}, simulation.Fault{Kind: simulation.Standby})
}

// holdsDigests expects a record of a Secret in which its values are not.
func (w *selectingWorld) holdsDigests(secret *unstructured.Unstructured) {
	w.t.Helper()
	if err := w.User.Get(w.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		w.t.Fatal(err)
	}
	record := secret.GetAnnotations()[fixture.Identity+"/record"]
	if record == "" || strings.Contains(record, "aHVudGVyMg") || strings.Contains(record, "password") {
		w.t.Errorf("the record of the Secret is %q", record)
	}
}

// An aggregated API server is down: its kinds are unknown, no other kind is hidden or stopped, and one warning is logged.
func TestABrokenGroupHidesNothing(t *testing.T) {
	declare := func(op *einmal.Operator) {
		einmal.ForEvery(op, einmal.Selector{Category: "tests"}).OnCreate("make", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since := 0
		w.create(fixture.DefineThings("a.dev", "categories: [tests]", "v1"))
		w.Pass(10 * time.Second)
		mend := w.Server.Intercept(stale("a.dev", "broken.dev"))
		w.create(fixture.DefineThings("b.dev", "categories: [tests]", "v1"))
		w.Pass(10 * time.Second)
		w.create(fixture.NewThing("a.dev/v1", "one"), fixture.NewThing("b.dev/v1", "one"))
		w.Pass(time.Hour)
		w.called(&since, "make of a.dev/v1 one (create)", "make of b.dev/v1 one (create)")
		w.says("msg~discovery failed for some API groups", 1)
		w.says("level=ERROR", 0)
		w.is("")
		mend()
		w.Stop()
		fail := w.Server.Intercept(refusing("/apis"))
		w.start()
		w.Pass(time.Minute)
		w.is("discovery has not succeeded yet: discover API resources: /apis: 503")
		fail()
		w.Pass(time.Minute)
		w.is("")
		fail = w.Server.Intercept(refusing("/apis"))
		w.create(fixture.NewThing("a.dev/v1", "two"))
		w.Pass(time.Minute)
		w.called(&since, "make of a.dev/v1 two (create)")
		w.is("")
		w.says("msg~discovery failed, using", 2)
		fail()
		w.Pass(time.Minute)
		w.says("msg~discovery succeeded again", 2)
		w.says("msg~no longer matches ForEvery", 0)
	})
}

// refusing lets the API server refuse what is asked for at a path.
func refusing(path string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == path {
			answer.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(answer, r)
	}
}

// stale lets the API server tell of groups what it tells when the server behind them is down.
func stale(groups ...string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path != "/apis" {
			next.ServeHTTP(answer, r)
			return
		}
		r.Header.Del("If-None-Match")
		recorded := httptest.NewRecorder()
		next.ServeHTTP(recorded, r)
		var list map[string]any
		if err := json.Unmarshal(recorded.Body.Bytes(), &list); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		items, _ := list["items"].([]any)
		items = slices.DeleteFunc(items, func(item any) bool {
			name, _, _ := unstructured.NestedString(item.(map[string]any), "metadata", "name")
			return slices.Contains(groups, name)
		})
		for _, name := range groups {
			items = append(items, map[string]any{"metadata": map[string]any{"name": name}, "versions": []any{
				map[string]any{"version": "v1", "freshness": "Stale"},
			}})
		}
		list["items"] = items
		answer.Header().Set("Content-Type", recorded.Header().Get("Content-Type"))
		text, _ := json.Marshal(list)
		_, _ = answer.Write(text)
	}
}

// Kinds that are chosen have owners too: a child that is deleted comes back, whatever kind its parent is of. Handlers read what
// is chosen from the cache.
func TestChosenKindsHaveChildren(t *testing.T) {
	said := &fixture.Notes{}
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Category: "tests"})
		every.Reconcile("sync", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.Add("%s %s woken by %v", c.Object.GetAPIVersion(), c.Object.GetName(), c.TriggeredBy)
			other := fixture.NewThing(c.Object.GetAPIVersion(), "one")
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(other), other); err != nil {
				return err
			}
			return c.Apply(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(c.Object.GetAPIVersion(), "/", "-")}})
		}, einmal.Owns[corev1.ConfigMap]())
	}
	selecting(t, declare, func(w *selectingWorld) {
		w.create(fixture.DefineThings("a.dev", "categories: [tests]", "v1"), fixture.DefineThings("b.dev", "categories: [tests]", "v1"))
		w.create(fixture.NewThing("a.dev/v1", "one"), fixture.NewThing("b.dev/v1", "one"))
		w.Pass(time.Minute)
		said.Said()
		w.delete(plainOf("ConfigMap", "b.dev-v1"))
		w.Pass(time.Minute)
		lines := said.Said()
		if len(lines) != 2 || lines[0] != "b.dev/v1 one woken by [ConfigMap default/b.dev-v1 deleted]" {
			t.Errorf("%q", lines)
		}
		w.change(fixture.DefineThings("b.dev", "", "v1"), func(u *unstructured.Unstructured) { fixture.AddVersion(u, "v2") })
		w.Pass(time.Minute)
		said.Said() // A trigger in the meantime may have been missed, so it runs again.
		w.delete(plainOf("ConfigMap", "b.dev-v1"))
		w.Pass(time.Minute)
		if lines := said.Said(); len(lines) == 0 || !strings.HasPrefix(lines[0], "b.dev/v2 one woken by") {
			t.Errorf("%q", lines)
		}
	})
}

// All mistakes in what is declared for chosen kinds come back at once.
func TestMistakesOfForEveryComeBackAtOnce(t *testing.T) {
	op := einmal.New("mistakes.example.com")
	einmal.ForEvery(op, einmal.Selector{}).OnCreate("none", fixture.Nothing[unstructured.Unstructured])
	einmal.ForEvery(op, einmal.Selector{Name: "pods", Category: "all"}).OnCreate("two", fixture.Nothing[unstructured.Unstructured])
	einmal.ForEvery(op, einmal.Selector{Name: "deployments.apps", Group: "apps"}).OnCreate("twice-said", fixture.Nothing[unstructured.Unstructured])
	einmal.ForEvery(op, einmal.Selector{Name: "services"})
	bad := einmal.ForEvery(op, einmal.Selector{Category: "all"})
	bad.OnCreate("bad id!", fixture.Nothing[unstructured.Unstructured])
	bad.OnCreate("same", fixture.Nothing[unstructured.Unstructured])
	bad.Timer("idle", 0, fixture.Nothing[unstructured.Unstructured])
	einmal.ForEvery(op, einmal.Selector{Category: "all"}).OnCreate("same", fixture.Nothing[unstructured.Unstructured])
	einmal.ForEvery(op, einmal.Selector{Everything: true}).OnCreate("secrets", fixture.Nothing[unstructured.Unstructured])
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"ForEvery: a selector must set exactly one of Name, Category and Everything", `Name "deployments.apps" already contains a group or version`,
		`kind ForEvery kinds called "services" has no handlers`, `handler "bad id!" of ForEvery kinds of the category "all"`,
		`handler "same" of ForEvery kinds of the category "all": ForEvery kinds of the category "all" has a handler with this id too`,
		"handler idle of ForEvery", "interval: must be at least 1ms, got 0s", "kind Secret: no namespace for the digest key",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if t.Failed() {
		t.Logf("told:\n%v", err)
	}
}

// The rights that are printed are as narrow as the selector, and the kinds that are known, allow.
func TestPermissionsForChosenKinds(t *testing.T) {
	for what, test := range map[string]struct {
		of      einmal.Selector
		declare func(*einmal.Kind[unstructured.Unstructured])
		want    []string
	}{
		"a name of the definitions": {of: einmal.Selector{Name: "widgets"}, want: []string{"test.einmal.dev widgets: get list watch patch", "test.einmal.dev widgets/status: patch"}},
		"a built-in name":           {of: einmal.Selector{Name: "ConfigMap"}, want: []string{" configmaps: get list watch patch"}},
		"an unknown name":           {of: einmal.Selector{Name: "certificates.cert-manager.io"}, want: []string{"cert-manager.io *: get list watch patch"}},
		"a category":                {of: einmal.Selector{Category: "all"}, want: []string{"* *: get list watch patch"}},
		"a category of a group":     {of: einmal.Selector{Category: "all", Group: "core"}, want: []string{" *: get list watch patch"}},
		"who only looks": {of: einmal.Selector{Everything: true}, want: []string{"* *: get list watch"}, declare: func(k *einmal.Kind[unstructured.Unstructured]) {
			k.OnEvent("watch", fixture.Nothing[unstructured.Unstructured])
		}},
	} {
		t.Run(what, func(t *testing.T) {
			op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("home"))
			kind := einmal.ForEvery(op, test.of)
			if test.declare == nil {
				kind.OnCreate("make", fixture.Nothing[unstructured.Unstructured])
			} else {
				test.declare(kind)
			}
			var got []string
			for _, rule := range hook.Of().Observe(op, nil, nil).Rights.Served {
				if !slices.Contains(rule.Resources, "events") {
					got = append(got, strings.Join(rule.APIGroups, " ")+" "+strings.Join(rule.Resources, " ")+": "+strings.Join(rule.Verbs, " "))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What was handled because it was chosen is uninstalled too.
func TestUninstallFindsChosenKinds(t *testing.T) {
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Category: "tests"})
		every.OnCreate("make", fixture.Nothing[unstructured.Unstructured])
		every.OnDelete("unmake", fixture.Nothing[unstructured.Unstructured])
		einmal.ForEvery(op, einmal.Selector{Name: "missing"}).OnCreate("miss", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		w.create(fixture.DefineThings("a.dev", "categories: [tests]", "v1"), fixture.NewThing("a.dev/v1", "one"))
		w.Pass(time.Minute)
		w.Stop()
		op := fixture.NewOperator()
		declare(op)
		var out strings.Builder
		if err := hook.Of().Uninstall(w.t.Context(), op, w.Server.Config(), &out); err != nil {
			t.Errorf("uninstall: %v", err)
		}
		for _, want := range []string{"Thing default/one: removed record, finalizer", `waiting for kinds called "missing" to be served`, "objects: 1 stripped"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not say %q:\n%s", want, &out)
			}
		}
	})
}
