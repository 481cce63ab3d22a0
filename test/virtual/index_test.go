package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// byTeam indexes the names of ConfigMaps by the teams that they list.
func byTeam(config *corev1.ConfigMap) (map[string]string, error) {
	entries := map[string]string{}
	for team := range strings.FieldsSeq(config.Data["teams"]) {
		entries[team] = config.Name
	}
	return entries, nil
}

func configOfTeams(name, teams string) *corev1.ConfigMap {
	config := fixture.NewConfigMap(name, 1)
	config.Data["teams"] = teams
	return config
}

// indexes lets the body of a test ask the index of the newest process.
type indexes struct {
	mu     sync.Mutex
	newest *einmal.Lookup[string, string]
}

func (x *indexes) set(newest *einmal.Lookup[string, string]) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.newest = newest
}

// expect compares what the index has of each key.
func (x *indexes) expect(tb testing.TB, want map[string][]string) {
	tb.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	got := map[string][]string{}
	for _, key := range x.newest.Keys() {
		got[key] = x.newest.Get(key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Error(diff)
	}
}

// Scenarios 77 and 80: many objects of one kind are there before the start; the first handler of another kind sees them all,
// and so does the first handler of the kind itself, with one worker for each.
func TestAnIndexIsCompleteBeforeTheFirstHandler(t *testing.T) {
	const there = 200
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		makeOperator := func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("default"), einmal.Workers(1))
			teams := einmal.Index(op, "by-team", byTeam)
			incomplete := func(kind string) {
				if found := len(teams.Get("a")); found != there {
					said.Add("the handler of a %s sees %d", kind, found)
				}
			}
			einmal.For[fixture.Widget](op).OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error {
				incomplete("Widget")
				return nil
			})
			configs := einmal.For[corev1.ConfigMap](op)
			configs.OnEvent("watch", func(context.Context, *einmal.Change[corev1.ConfigMap]) error {
				incomplete("ConfigMap")
				return nil
			})
			configs.OnResume("look", fixture.Nothing[corev1.ConfigMap])
			return op
		}
		w.Install(makeOperator)
		for i := range there {
			w.Create(configOfTeams(fmt.Sprint("config-", i), "a"))
		}
		w.Create(fixture.NewWidget("one"), fixture.NewWidget("two"))
		w.Start(makeOperator)
		w.Advance(time.Minute)
		said.Expect(w)
		if ran := slices.ContainsFunc(w.Calls(), func(call einmaltest.Call) bool { return call.Handler == "make" && call.Name == "two" }); !ran {
			w.Error("the handlers did not run")
		}
	})
}

// Scenario 78: an object that changes is moved, one that is deleted or does not match any more is removed, one that begins to match
// is entered; one that is being deleted is there until it is gone.
func TestAnIndexFollowsItsObjects(t *testing.T) {
	newest := &indexes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			newest.set(einmal.Index(op, "by-team", byTeam, einmal.Labels("hidden", einmal.Absent())))
			einmal.For[fixture.Widget](op).Reconcile("sync", fixture.Nothing[fixture.Widget])
			return op
		})
		one, two := configOfTeams("one", "a b"), configOfTeams("two", "a")
		one.Finalizers = []string{"example.com/keep"}
		w.Create(two, one, configOfTeams("none", ""))
		w.Advance(time.Minute)
		newest.expect(w, map[string][]string{"a": {"one", "two"}, "b": {"one"}})
		w.Patch(two, `{"data":{"teams":"b c"}}`)
		w.Advance(time.Minute)
		newest.expect(w, map[string][]string{"a": {"one"}, "b": {"one", "two"}, "c": {"two"}})
		w.Patch(two, `{"metadata":{"labels":{"hidden":"yes"}}}`)
		w.Advance(time.Minute)
		newest.expect(w, map[string][]string{"a": {"one"}, "b": {"one"}})
		w.Patch(two, `{"metadata":{"labels":null}}`)
		w.Delete(one)
		w.Advance(time.Minute)
		newest.expect(w, map[string][]string{"a": {"one"}, "b": {"one", "two"}, "c": {"two"}})
		w.Patch(one, `{"metadata":{"finalizers":null}}`)
		w.Advance(time.Minute)
		newest.expect(w, map[string][]string{"b": {"two"}, "c": {"two"}})
		w.Restart()
		w.Advance(time.Minute)
		newest.expect(w, map[string][]string{"b": {"two"}, "c": {"two"}})
	})
}

// Scenario 76, and G5 of docs/concepts/footguns.md: objects that are deleted or re-created with the same name during a gap of the watch leave
// the index. Their last state is delivered once, and their memo is forgotten.
func TestObjectsThatVanishInAWatchGapLeaveTheIndex(t *testing.T) {
	newest, said := &indexes{}, &fixture.Notes{}
	lost := simulation.Fault{Kind: simulation.EventLost, At: simulation.Point{What: "configmaps", N: 3}}
	type memory struct{ n int }
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		newest.set(einmal.Index(op, "by-team", byTeam))
		einmal.For[corev1.ConfigMap](op).OnEvent("remember", func(_ context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			memo := einmal.Memo[memory](c)
			memo.n++
			said.Add("%s %s with %d events", c.Object.Name, c.Reason, memo.n)
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		for _, one := range []*corev1.ConfigMap{configOfTeams("one", "a"), configOfTeams("two", "a")} {
			if err := w.User.Create(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}
		w.Pass(time.Minute)
		newest.expect(t, map[string][]string{"a": {"one", "two"}})
		said.Said()
		for _, err := range []error{
			w.User.Delete(t.Context(), configOfTeams("one", "")),
			w.User.Delete(t.Context(), configOfTeams("two", "")),
			w.User.Create(t.Context(), configOfTeams("two", "b")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		w.Pass(5 * time.Minute)
		newest.expect(t, map[string][]string{"b": {"two"}})
		lines := said.Said()
		slices.Sort(lines)
		if diff := cmp.Diff([]string{"one deleted with 2 events", "two added with 1 events", "two deleted with 2 events"}, lines); diff != "" {
			t.Error(diff)
		}
	}, lost)
}

// failsFor is an index function that fails as the object says.
func failsFor(tries *fixture.Notes) func(*corev1.ConfigMap) (map[string]string, error) {
	return func(config *corev1.ConfigMap) (map[string]string, error) {
		tries.Add("%s", config.Name)
		switch config.Data["fail"] {
		case "":
			return byTeam(config)
		case "panic":
			panic("no such team")
		case "permanent":
			return nil, einmal.Permanent(errors.New("never"))
		case "later":
			return nil, einmal.RetryAfter(time.Hour, errors.New("not yet"))
		default:
			return nil, errors.New("oh")
		}
	}
}

// Scenario 79: an object for which the index function fails keeps its previous entries, is excluded until it changes, or is excluded until a
// retry succeeds.
func TestFailuresOfAnIndex(t *testing.T) {
	there := map[string][]string{"a": {"one"}}
	for name, test := range map[string]struct {
		fail    string
		options []einmal.IndexOption
		// now is what the index holds after the failure, tries how often the function is called in the hour after it.
		now   map[string][]string
		tries int
	}{
		"ignored: stale kept":                    {"plain", []einmal.IndexOption{einmal.OnError(einmal.PolicyIgnore)}, there, 1},
		"permanent: excluded":                    {"permanent", nil, map[string][]string{}, 1},
		"fail: excluded":                         {"plain", []einmal.IndexOption{einmal.OnError(einmal.PolicyFail)}, map[string][]string{}, 1},
		"at most three attempts: excluded":       {"plain", []einmal.IndexOption{einmal.MaxAttempts(3)}, map[string][]string{}, 3},
		"asked for a delay: excluded until then": {"later", nil, map[string][]string{}, 2},
		"plain: excluded, and tried again":       {"plain", []einmal.IndexOption{einmal.Backoff(25*time.Minute, 25*time.Minute)}, map[string][]string{}, 3},
		"a panic is an error":                    {"panic", []einmal.IndexOption{einmal.OnError(einmal.PolicyIgnore)}, there, 1},
	} {
		t.Run(name, func(t *testing.T) {
			newest, tries := &indexes{}, &fixture.Notes{}
			einmaltest.Run(t, func(w *einmaltest.World) {
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op := fixture.NewOperator()
					newest.set(einmal.Index(op, "by-team", failsFor(tries), test.options...))
					einmal.For[fixture.Widget](op).Reconcile("sync", fixture.Nothing[fixture.Widget])
					return op
				})
				one := configOfTeams("one", "a")
				w.Create(one)
				w.Advance(time.Minute)
				newest.expect(w, there)
				tries.Said()
				w.Patch(one, `{"data":{"fail":"`+test.fail+`"}}`)
				w.Advance(time.Hour + time.Second)
				newest.expect(w, test.now)
				if made := len(tries.Said()); made != test.tries {
					w.Errorf("%d tries, want %d", made, test.tries)
				}
				w.Patch(one, `{"data":{"fail":null,"teams":"b"}}`)
				w.Advance(time.Minute)
				newest.expect(w, map[string][]string{"b": {"one"}})
				tries.Said()
				w.Advance(3 * time.Hour)
				tries.Expect(w)
			})
		})
	}
}

// A retry succeeds without another event once the dependency of the function exists.
func TestAnIndexTriesAgain(t *testing.T) {
	newest := &indexes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op, n := fixture.NewOperator(), 0
			newest.set(einmal.Index(op, "by-team", func(config *corev1.ConfigMap) (map[string]string, error) {
				if n++; n < 3 {
					return nil, einmal.RequeueAfter(time.Minute)
				}
				return byTeam(config)
			}))
			einmal.For[fixture.Widget](op).Reconcile("sync", fixture.Nothing[fixture.Widget])
			return op
		})
		w.Create(configOfTeams("one", "a"))
		w.Advance(90 * time.Second)
		newest.expect(w, map[string][]string{})
		w.Advance(time.Minute)
		newest.expect(w, map[string][]string{"a": {"one"}})
	})
}

// Callers may change the values of a lookup, and any number of them may look up concurrently.
func TestALookupReturnsACopy(t *testing.T) {
	newest := &indexes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			teams := einmal.Index(op, "by-team", byTeam)
			newest.set(teams)
			einmal.For[fixture.Widget](op).Reconcile("sync", func(context.Context, *einmal.Change[fixture.Widget]) error {
				for _, key := range teams.Keys() {
					found := teams.Get(key)
					found[0] = "harmed"
				}
				return nil
			}, einmal.Owns[corev1.ConfigMap]())
			return op
		})
		for i := range 50 {
			w.Create(configOfTeams(fmt.Sprint("c", i), "a b c"), fixture.NewWidget(fmt.Sprint("w", i)))
		}
		w.Advance(time.Minute)
		newest.mu.Lock()
		defer newest.mu.Unlock()
		if values := newest.newest.Get("a"); len(values) != 50 || slices.Contains(values, "harmed") || newest.newest.Get("none") != nil {
			w.Errorf("%q", values)
		}
	})
}

// Run returns all mistakes in indexes as one error that names the remedy. A kind that is not served yet blocks nothing.
func TestMistakesInIndexes(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[fixture.Widget](op).Reconcile("sync", fixture.Nothing[fixture.Widget])
	metadata := func(*metav1.PartialObjectMetadata) (map[string]bool, error) { return nil, nil }
	einmal.Index[string, string, corev1.ConfigMap](op, "no-function", nil)
	einmal.Index(op, "twice", byTeam)
	einmal.Index(op, "twice", byTeam)
	einmal.Index(op, "no id", byTeam)
	einmal.Index(op, "no-field", byTeam, einmal.FieldMatches("spec.x", einmal.Present()))
	einmal.Index(op, "no-name", metadata)
	einmal.Index(op, "two-forms", func(*unstructured.Unstructured) (map[string]bool, error) { return nil, nil }, einmal.GVK("", "v1", "ConfigMap"))
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`index "no-function" has no function`, `index "twice" is declared twice`, `index "no id": id must have`,
		`index "no-field": field spec.x: v1.ConfigMap has no field spec`,
		`index "no-name" of v1.PartialObjectMetadata: PartialObjectMetadata does not say its kind`, `index "two-forms" of unstructured.Unstructured: `,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nbut:\n%v", want, err)
		}
	}
}

// A handler waits until a slow index has its object, and runs as soon as it has.
func TestAHandlerRunsAsSoonAsASlowIndexHasItsObject(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		var indexed, ran atomic.Int64 // in nanoseconds of virtual time
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.Index(op, "by-team", func(config *corev1.ConfigMap) (map[string]string, error) {
				<-time.After(2 * time.Second)
				indexed.Store(time.Now().UnixNano())
				return byTeam(config)
			})
			einmal.For[corev1.ConfigMap](op).OnCreate("use", func(context.Context, *einmal.Change[corev1.ConfigMap]) error {
				ran.Store(time.Now().UnixNano())
				return nil
			})
			return op
		})
		w.Advance(time.Second)
		w.Create(configOfTeams("one", "red"))
		w.Advance(3 * time.Second)
		if after := time.Duration(ran.Load() - indexed.Load()); indexed.Load() == 0 || after < 0 || after > time.Second {
			w.Errorf("handled %s after it was indexed", after)
		}
	})
}
