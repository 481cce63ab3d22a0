package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// livedOn is a widget's life on the real control plane, as one handler after the other sees it.
type livedOn struct {
	// declare declares the handlers, which note what they do; later, if any, those of the release after it.
	declare, later func(*einmal.Kind[fixture.Widget], *fixture.Journal)
	// listed waits for the operator's first list before the widget is created: without it, the watch can see the widget as one that was there.
	listed bool
	// live is what happens to the widget.
	live func(t *testing.T, w *world, j *fixture.Journal)
	want []string
	// unrecorded tells that there is no record.
	unrecorded bool
}

// lived is the name of the widget.
const lived = "lived"

// Scenarios as they are in scripts, on a real API server: those that depend most on what it does.
func TestScenariosOnARealControlPlane(t *testing.T) {
	t.Parallel() // TestSecretsOnARealControlPlane, which uses the same kinds, is not parallel, so it has ended.
	w := sharedWorld(t)
	for title, life := range map[string]livedOn{
		"what no handler looks at (scenarios 6, 8 and 9)":                        quietLife(),
		"events in their order (scenarios 51, 52)":                               eventful(),
		"a timer, and a daemon that is waited for (scenarios 62, 63, 69 and 70)": guardedOn(),
	} {
		t.Run(title, func(t *testing.T) { w.lives(t, life) })
	}
}

// Other scenarios as they are in scripts, on a real API server.
func TestMoreScenariosOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for title, life := range map[string]livedOn{
		"labels and annotations (scenario 7)":                                labelledLife(),
		"a delete handler without a finalizer keeps no object (scenario 11)": notHeld(),
		"an old finalizer goes (scenario 15)":                                oldFinalizer(),
		"a renamed handler goes on where it was (scenarios 28, 37)":          renamed(),
		"attempts are counted, and errors ignored (scenarios 24, 25)":        limited(),
		"handlers run in their order (scenario 30)":                          oneByOne(),
		"from one value to another (scenarios 40, 42 and 43)":                fromTo(),
		"steps are not done again (scenarios 54, 55)":                        stepwise(),
	} {
		t.Run(title, func(t *testing.T) { w.lives(t, life) })
	}
}

// lives runs the operator, and the operator after it, through the widget's life.
func (w *world) lives(t *testing.T, life livedOn) {
	t.Helper()
	j := &fixture.Journal{}
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) { life.declare(widgets, j) })
	if life.listed {
		w.listed(t, j)
	}
	w.create(t, fixture.StatusCarrier(), lived)
	if !life.unrecorded {
		w.stored(t, lived, `"v":1`)
	}
	w.quiet(t, fixture.StatusCarrier())
	if life.later != nil {
		stop()
		stop, _ = w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) { life.later(widgets, j) })
	}
	life.live(t, w, j)
	cluster.Eventually(t, "the calls", func(context.Context) error {
		if got := j.Of(lived); fmt.Sprint(got) != fmt.Sprint(life.want) {
			return fmt.Errorf("got %q, want %q", got, life.want)
		}
		return nil
	})
	stop()
	w.Kubectl(t, "", "delete", "widget", lived, "--ignore-not-found")
}

// listed waits until the operator has listed the widgets. It needs an event handler that adds each call to the journal: the call for another widget
// comes after the list, whether the list contains that widget or not.
func (w *world) listed(t *testing.T, j *fixture.Journal) {
	t.Helper()
	const other = "other"
	w.create(t, fixture.StatusCarrier(), other)
	cluster.Until(t, "a handler runs for another widget", func() bool { return len(j.Of(other)) > 0 })
	w.delete(t, fixture.StatusCarrier(), other)
}

// merge changes the widget as a user does.
func (w *world) merge(t *testing.T, patch string) {
	t.Helper()
	w.Kubectl(t, "", "patch", "widget", lived, "--type=merge", "-p", patch)
}

func quietLife() livedOn {
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnUpdate("follow", fixture.Done(j, "follow"))
		},
		live: func(t *testing.T, w *world, _ *fixture.Journal) {
			t.Helper()
			const byPeople = 2
			w.spend(t, fixture.StatusCarrier(), "a change that no handler looks at", byPeople, func() {
				w.Kubectl(t, "", "patch", "widget", lived, "--type=json", "--subresource=status",
					"-p", `[{"op":"add","path":"/status/phase","value":"theirs"}]`)
				w.Kubectl(t, fixture.StatusCarrier().Manifest(lived, 1), "apply", "-f", "-") // Its annotation is new.
				w.edit(t, fixture.StatusCarrier(), lived, "size", int64(1))
			})
		},
	}
}

func labelledLife() livedOn {
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnUpdate("follow", fixture.Done(j, "follow"))
		},
		live: func(t *testing.T, w *world, j *fixture.Journal) {
			t.Helper()
			w.Kubectl(t, "", "label", "widget", lived, "team=a")
			cluster.Until(t, "the handler runs for the label", func() bool { return len(j.Of(lived)) > 0 })
			w.Kubectl(t, "", "annotate", "widget", lived, "example.com/note=b")
		},
		want: []string{"follow 1", "follow 1"},
	}
}

func notHeld() livedOn {
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnCreate("make", fixture.Done(j, "make"))
			widgets.OnDelete("note", fixture.Done(j, "note"), einmal.WithoutFinalizer())
		},
		live: func(t *testing.T, w *world, _ *fixture.Journal) {
			t.Helper()
			if text := w.Kubectl(t, "", "get", "widget", lived, "-o", "jsonpath={.metadata.finalizers}"); text != "" {
				t.Errorf("it has the finalizers %s", text)
			}
			w.delete(t, fixture.StatusCarrier(), lived)
		},
		want: []string{"make 1"},
	}
}

func oldFinalizer() livedOn {
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnDelete("unmake", fixture.Done(j, "unmake"))
		},
		later: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnCreate("make", fixture.Done(j, "make"))
		},
		live: func(t *testing.T, w *world, _ *fixture.Journal) {
			t.Helper()
			cluster.Eventually(t, "the finalizer goes", func(ctx context.Context) error {
				found, err := w.get(ctx, fixture.StatusCarrier(), lived)
				if err == nil && len(found.GetFinalizers()) > 0 {
					err = fmt.Errorf("there are %q", found.GetFinalizers())
				}
				return err
			})
		},
	}
}

func renamed() livedOn {
	soon := einmal.RetryAfter(3*time.Second, errors.New("not yet"))
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnCreate("make", fixture.Failing(j, "make", 1, soon))
			widgets.OnCreate("paint", fixture.Done(j, "paint"))
		},
		later: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnCreate("build", fixture.Failing(j, "build", 1, soon), einmal.FormerlyKnownAs("make"))
			widgets.OnCreate("color", fixture.Done(j, "color"), einmal.FormerlyKnownAs("paint"))
		},
		live: func(*testing.T, *world, *fixture.Journal) {},
		want: []string{"make 1", "paint 1", "build 2"},
	}
}

func limited() livedOn {
	never := errors.New("never")
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnCreate("nice", fixture.Failing(j, "nice", 9, never), einmal.OnError(einmal.PolicyIgnore))
			widgets.OnCreate("thrice", fixture.Failing(j, "thrice", 9, never), einmal.MaxAttempts(3), einmal.Backoff(10*time.Millisecond, 20*time.Millisecond))
		},
		live: func(t *testing.T, w *world, _ *fixture.Journal) {
			t.Helper()
			w.stored(t, lived, `"thrice":{"cause":"create","outcome":"failed"`, `"attempts":3`)
		},
		want: []string{"nice 1", "thrice 1", "thrice 2", "thrice 3"},
	}
}

func oneByOne() livedOn {
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			for _, id := range []string{"c", "a", "b"} {
				widgets.OnCreate(id, fixture.Done(j, id))
			}
		},
		live: func(*testing.T, *world, *fixture.Journal) {},
		want: []string{"c 1", "a 1", "b 1"},
	}
}

func fromTo() livedOn {
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnUpdate("turned", fixture.Done(j, "turned"), einmal.FieldChanges("spec.color", einmal.From(einmal.Equals("red")), einmal.To(einmal.Equals("blue"))))
			widgets.OnUpdate("bleached", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				j.Add(c.Object.Name, fmt.Sprintf("bleached: %v", c.Diff))
				return nil
			}, einmal.FieldChanges("spec.color", einmal.To(einmal.Absent())))
		},
		live: func(t *testing.T, w *world, _ *fixture.Journal) {
			t.Helper()
			for _, color := range []string{`"green"`, `"blue"`, `"red"`, `"blue"`, `null`} {
				w.merge(t, `{"spec":{"color":`+color+`}}`)
				if color != `null` {
					w.stored(t, lived, `"color":`+color) // The handlers have seen this color before the next one comes.
				}
			}
		},
		want: []string{"turned 1", "bleached: [{remove [spec color] blue <nil>}]"},
	}
}

func eventful() livedOn {
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnEvent("watch", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				j.Add(c.Object.Name, fmt.Sprintf("%s, size %d", c.Reason, c.Object.Spec.Size))
				return errors.New("it is not called again for that")
			})
		},
		live: func(t *testing.T, w *world, j *fixture.Journal) {
			t.Helper()
			seen := func(events int) {
				cluster.Until(t, "the event is seen", func() bool { return len(j.Of(lived)) >= events })
			}
			seen(1)
			w.merge(t, `{"spec":{"size":2}}`)
			seen(2)
			w.delete(t, fixture.StatusCarrier(), lived)
		},
		listed:     true,
		unrecorded: true,
		want:       []string{"added, size 1", "modified, size 2", "deleted, size 2"},
	}
}

func stepwise() livedOn {
	return livedOn{
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				err := einmal.Step(ctx, c, "outer", func(ctx context.Context) error {
					return einmal.Step(ctx, c, "inner", func(context.Context) error { return fixture.Done(j, "inner")(ctx, c) })
				})
				if err != nil {
					return err
				}
				return einmal.Step(ctx, c, "shaky", func(ctx context.Context) error { return fixture.Failing(j, "shaky", 2, errors.New("not yet"))(ctx, c) })
			}, einmal.Backoff(10*time.Millisecond, 20*time.Millisecond))
		},
		live: func(t *testing.T, w *world, _ *fixture.Journal) {
			t.Helper()
			w.stored(t, lived, `"base"`)
		},
		want: []string{"inner 1", "shaky 1", "shaky 2", "shaky 3"},
	}
}
