package virtual_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// shops are the calls of an operator of shops, whose definition accepts all fields.
type shops struct {
	*einmaltest.World
	fixture.Notes
}

// withShops runs an operator that notes which handlers run.
func withShops(t *testing.T, use func(*shops), declare ...func(*einmal.Operator, *einmal.Kind[fixture.Shop], *shops)) {
	t.Helper()
	einmaltest.Run(t, func(w *einmaltest.World) {
		s := &shops{World: w}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.ShopsOperator, einmal.Scheme(fixture.AddKinds), einmal.CRDs([]byte(fixture.DefineFreeKind("Shop"))), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("default"))
			kind := einmal.For[fixture.Shop](op, einmal.GVK("field.example.com", "v1", "Shop"))
			note := func(what string) einmal.HandlerFunc[fixture.Shop] {
				return func(_ context.Context, c *einmal.Change[fixture.Shop]) error {
					s.Add("%s %s with %d", what, c.Object.Name, c.Object.Spec.Replicas)
					c.Object.Status.Seen = what
					return nil
				}
			}
			kind.OnCreate("open", note("open"))
			kind.OnUpdate("refit", note("refit"), einmal.Fields("spec"))
			kind.OnDelete("close", note("close"))
			for _, more := range declare {
				more(op, kind, s)
			}
			return op
		})
		w.Advance(time.Second)
		use(s)
	})
}

// rawShop is a Shop whose spec has any content.
func rawShop(name string, spec any) *unstructured.Unstructured {
	one := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fixture.ShopVersion, "kind": "Shop", "metadata": map[string]any{"namespace": "default", "name": name},
	}}
	if spec != nil {
		one.Object["spec"] = spec
	}
	return one
}

// reported returns the messages of the events that an object cannot be decoded, by the name of the object.
func (s *shops) reported() map[string]string {
	found := map[string]string{}
	for _, line := range eventsOf(s.World) {
		if about, message, is := strings.Cut(line, ": "); is && strings.Contains(about, " Undecodable ") {
			found[about[strings.LastIndex(about, "/")+1:]] = message
		}
	}
	return found
}

func (s *shops) expectUndecodable(count int) {
	s.Helper()
	want := fmt.Sprintf("objects_undecodable %d", count)
	found := slices.ContainsFunc(samples(s, fixture.ShopsOperator), func(line string) bool { return line == want })
	if !found {
		s.Errorf("no metric %q in %q", want, samples(s, fixture.ShopsOperator))
	}
}

// badSpecs are specs that do not fit, with the field, the type of the value and what the operator must not print.
func badSpecs() map[string]struct {
	spec                 any
	field, found, hidden string
} {
	return map[string]struct {
		spec                 any
		field, found, hidden string
	}{
		"word":     {map[string]any{"replicas": "hunter2"}, "spec.replicas", "string", "hunter2"},
		"overflow": {map[string]any{"replicas": int64(3000000000)}, "spec.replicas", "number", "3000000000"},
		"fraction": {map[string]any{"replicas": 1.5}, "spec.replicas", "number", "1.5"},
		"number":   {map[string]any{"name": int64(5551)}, "spec.name", "number", "5551"},
		"quantity": {map[string]any{"size": "lots-and-lots"}, "spec.size", "string", "lots-and-lots"},
		"time":     {map[string]any{"opens": "yesterday"}, "spec.opens", "string", "yesterday"},
		"text":     {"wholly-wrong", "spec", "string", "wholly-wrong"},
		"item":     {map[string]any{"doors": []any{map[string]any{"width": 1.5}, map[string]any{"width": "wide-open"}}}, "spec.doors[1].width", "string", "wide-open"},
		"list":     {map[string]any{"doors": map[string]any{"front": "secret-door"}}, "spec.doors", "object", "secret-door"},
	}
}

// An object that does not fit its Go type is reported on itself. All other objects are handled, at the start and later. It is handled when it
// is corrected.
func TestAnObjectThatCannotBeDecodedStopsNoOther(t *testing.T) {
	withShops(t, func(s *shops) {
		s.Create(rawShop("good", map[string]any{"replicas": int64(1)}))
		s.Advance(time.Minute)
		s.Expect(s, "open good with 1")
		for name, bad := range badSpecs() {
			s.Create(rawShop(name, bad.spec))
		}
		s.Create(rawShop("later", map[string]any{"replicas": int64(2)}))
		s.Advance(time.Minute)
		s.Expect(s, "open later with 2")
		s.expectUndecodable(len(badSpecs()))
		expectReported(s)
		s.Restart() // Now the first list has them.
		s.Patch(rawShop("good", nil), `{"spec":{"replicas":3}}`)
		s.Advance(time.Minute)
		s.Expect(s, "refit good with 3")
		s.expectUndecodable(len(badSpecs()))
		s.Patch(rawShop("word", nil), `{"spec":{"replicas":4}}`)
		s.Delete(rawShop("time", nil))
		s.Advance(time.Minute)
		s.Expect(s, "open word with 4")
		s.expectUndecodable(len(badSpecs()) - 2)
		if s.World.Get(rawShop("time", nil)) {
			s.Error("an object without finalizer cannot be deleted")
		}
	})
}

func expectReported(s *shops) {
	s.Helper()
	events := s.reported()
	for name, bad := range badSpecs() {
		want := "cannot decode field " + bad.field + ": its value is of type " + bad.found
		if !strings.Contains(events[name], want) {
			s.Errorf("the event of %s is %q, want %q", name, events[name], want)
		}
		if strings.Contains(fmt.Sprint(events), bad.hidden) {
			s.Errorf("the value of %s is in an event", name)
		}
	}
}

// The log names the object and the field, and no values.
func TestTheLogNamesTheFieldThatCannotBeDecoded(t *testing.T) {
	var log bytes.Buffer
	virtuallyMade(t, &log, func() simulation.Operator {
		op := einmal.New(fixture.ShopsOperator, einmal.CRDs([]byte(fixture.DefineFreeKind("Shop"))), einmal.StateNamespace("default"))
		einmal.For[fixture.Shop](op, einmal.GVK("field.example.com", "v1", "Shop")).OnCreate("open", fixture.Nothing[fixture.Shop])
		return op
	}, func(t *testing.T, w *virtualWorld) {
		for name, bad := range badSpecs() {
			fixture.Must(t, w.User.Create(t.Context(), rawShop(name, bad.spec)))
		}
		w.Pass(time.Minute)
	})
	for name, bad := range badSpecs() {
		want := "object=default/" + name + ` error="cannot decode field ` + bad.field + ": its value is of type " + bad.found
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log does not say once: %s", want)
		}
		if strings.Contains(log.String(), bad.hidden) {
			t.Errorf("the value of %s is in the log", name)
		}
	}
}

// A good object that becomes undecodable keeps its finalizer and its record. It is handled as an update when it is corrected.
func TestAnObjectThatBecomesUndecodableIsNotForgotten(t *testing.T) {
	for _, change := range []string{`{"spec":{"replicas":"three"}}`, `{"status":{"seen":["x"]}}`, `{"status":{"records":{"shops.field.example.com":5}}}`} {
		t.Run(change, func(t *testing.T) {
			withShops(t, func(s *shops) {
				s.Create(rawShop("one", map[string]any{"replicas": int64(1)}))
				s.Advance(time.Minute)
				s.Expect(s, "open one with 1")
				record, _, _ := unstructured.NestedString(live(s, "one").Object, "status", "records", fixture.ShopsOperator)
				if err := patchAnywhere(s, "one", change); err != nil {
					s.Fatal(err)
				}
				s.Advance(time.Minute)
				s.expectUndecodable(1)
				s.Restart()
				s.Advance(time.Minute)
				correct := fmt.Sprintf(`{"spec":{"replicas":2},"status":{"seen":"open","records":{%q:%q}}}`, fixture.ShopsOperator, record)
				if err := patchAnywhere(s, "one", correct); err != nil {
					s.Fatal(err)
				}
				s.Advance(time.Minute)
				s.Expect(s, "refit one with 2")
				s.expectUndecodable(0)
			})
		})
	}
}

// patchAnywhere changes the object and its status.
func patchAnywhere(s *shops, name, change string) error {
	s.Helper()
	one := rawShop(name, nil)
	patch := client.RawPatch(types.MergePatchType, []byte(change))
	if err := s.Client().Patch(s.Context(), one, patch); err != nil {
		return err
	}
	return s.Client().Status().Patch(s.Context(), rawShop(name, nil), patch)
}

func live(s *shops, name string) *unstructured.Unstructured {
	s.Helper()
	one := rawShop(name, nil)
	if !s.World.Get(one) {
		s.Fatalf("%s is gone", name)
	}
	return one
}

// The delete handlers of an object that cannot be decoded do not run. The object is deleted after it is corrected, or released by annotation.
func TestADeletedObjectThatCannotBeDecodedIsReleased(t *testing.T) {
	withShops(t, func(s *shops) {
		s.Create(rawShop("corrected", nil), rawShop("released", nil))
		s.Advance(time.Minute)
		s.Said()
		for _, name := range []string{"corrected", "released"} {
			s.Patch(rawShop(name, nil), `{"spec":"text"}`)
			s.Delete(rawShop(name, nil))
		}
		s.Advance(time.Minute)
		s.Expect(s)
		const remedy = `set the annotation shops.field.example.com/release to *`
		if message := s.reported()["released"]; !strings.Contains(message, remedy) {
			s.Errorf("the event is %q", message)
		}
		s.Patch(rawShop("corrected", nil), `{"spec":{"replicas":7}}`)
		s.Patch(rawShop("released", nil), `{"metadata":{"annotations":{"shops.field.example.com/release":"*"}}}`)
		s.Advance(time.Minute)
		s.Expect(s, "close corrected with 7")
		for _, name := range []string{"corrected", "released"} {
			if s.World.Get(rawShop(name, nil)) {
				s.Errorf("%s is still there", name)
			}
		}
		s.expectUndecodable(0)
	})
}

// The log says if the delete handlers of an object that cannot be decoded did not run because another client has removed the finalizer. A release by annotation has
// a log line of its own.
func TestAnObjectThatCannotBeDecodedVanishes(t *testing.T) {
	log := &fixture.Log{}
	virtuallyMade(t, log, func() simulation.Operator {
		op := einmal.New(fixture.ShopsOperator, einmal.Scheme(fixture.AddKinds), einmal.CRDs([]byte(fixture.DefineFreeKind("Shop"))), einmal.StateNamespace("default"))
		einmal.For[fixture.Shop](op, einmal.GVK("field.example.com", "v1", "Shop")).OnDelete("close", func(context.Context, *einmal.Change[fixture.Shop]) error { return nil })
		return op
	}, func(t *testing.T, w *virtualWorld) {
		vanished, released := rawShop("vanished", nil), rawShop("released", nil)
		w.create(t, vanished)
		w.create(t, released)
		w.Pass(time.Minute)
		change := func(one *unstructured.Unstructured, patch string) {
			if err := w.User.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Fatal(err)
			}
		}
		change(vanished, `{"spec":"text"}`)
		change(released, `{"spec":"text","metadata":{"annotations":{"shops.field.example.com/release":"*"}}}`)
		w.Pass(time.Minute)
		for _, one := range []*unstructured.Unstructured{vanished, released} {
			if err := w.User.Delete(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		w.Pass(time.Minute)
		change(vanished, `{"metadata":{"finalizers":null}}`)
		w.Pass(time.Minute)
		const unhandled = "the object is gone, and its delete handlers have not run"
		fixture.ExpectLine(t, log, "level=WARN", "msg="+unhandled, "object=default/vanished")
		fixture.ExpectLine(t, log, "level=INFO", "msg=the object is gone", "object=default/released")
	})
}

// The outcome of a handler whose object becomes undecodable meanwhile is written when the object is corrected. Numbers that the Go type cannot
// hold are not cut when the object is read from the API server.
func TestAnObjectThatBecomesUndecodableWhileAHandlerRuns(t *testing.T) {
	for _, bad := range []string{`{"spec":{"replicas":3000000000}}`, `{"spec":{"replicas":1.5}}`, `{"spec":{"replicas":"x"}}`} {
		t.Run(bad, func(t *testing.T) {
			withShops(t, func(s *shops) {
				s.Create(rawShop("one", map[string]any{"replicas": int64(1)}))
				s.Advance(time.Minute)
				s.Patch(rawShop("one", nil), bad)
				s.Advance(10 * time.Minute)
				s.Expect(s, "open one with 1", "slow begins with 1", "slow ends")
				s.Patch(rawShop("one", nil), `{"spec":{"replicas":2}}`)
				s.Advance(10 * time.Minute)
				s.Expect(s, "refit one with 2")
				if seen, _, _ := unstructured.NestedString(live(s, "one").Object, "status", "slow"); seen != "done" {
					s.Errorf("the status of the handler is %q", seen)
				}
			}, func(_ *einmal.Operator, kind *einmal.Kind[fixture.Shop], s *shops) {
				kind.OnCreate("slow", func(_ context.Context, c *einmal.Change[fixture.Shop]) error {
					s.Add("slow begins with %d", c.Object.Spec.Replicas)
					<-time.After(5 * time.Minute)
					c.Object.Status.Slow = "done"
					s.Add("slow ends")
					return nil
				})
			})
		})
	}
}

// An object that becomes undecodable before the finalizer is added runs no handler. A number that the Go type cannot hold is not cut.
func TestNoHandlerSeesANumberThatIsCut(t *testing.T) {
	said := &fixture.Notes{}
	virtuallyMade(t, fixture.NewLog(t), func() simulation.Operator {
		op := einmal.New(fixture.ShopsOperator, einmal.CRDs([]byte(fixture.DefineFreeKind("Shop"))), einmal.StateNamespace("default"))
		kind := einmal.For[fixture.Shop](op, einmal.GVK("field.example.com", "v1", "Shop"))
		kind.OnCreate("open", func(_ context.Context, c *einmal.Change[fixture.Shop]) error {
			said.Add("open with %d", c.Object.Spec.Replicas)
			return nil
		})
		kind.OnDelete("close", fixture.Nothing[fixture.Shop])
		return op
	}, func(t *testing.T, w *virtualWorld) {
		patch := func(replicas string) {
			change := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`))
			fixture.Must(t, w.User.Patch(t.Context(), rawShop("one", nil), change, client.FieldOwner("rival")))
		}
		rival := false
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if !rival && writes(t, r, "finalizer") {
				rival = true
				patch("3000000000")
			}
			next.ServeHTTP(answer, r)
		})
		fixture.Must(t, w.User.Create(t.Context(), rawShop("one", map[string]any{"replicas": int64(1)})))
		w.Pass(time.Minute)
		said.Expect(t)
		patch("2")
		w.Pass(time.Minute)
		said.Expect(t, "open with 2")
	})
}
