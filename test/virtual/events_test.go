package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// eventsOf lists the events of operators, each as TYPE REASON KIND NAMESPACE/NAME xCOUNT: MESSAGE.
func eventsOf(w *einmaltest.World) []string {
	w.Helper()
	var list corev1.EventList
	if err := w.Client().List(w.Context(), &list); err != nil {
		w.Fatal(err)
	}
	var found []string
	for _, event := range list.Items {
		if event.ReportingController == "" && event.Source.Component == "" {
			continue
		}
		about := event.InvolvedObject
		line := fmt.Sprintf("%s %s %s %s/%s", event.Type, event.Reason, about.Kind, about.Namespace, about.Name)
		if event.Count > 1 {
			line += fmt.Sprintf(" x%d", event.Count)
		}
		found = append(found, line+": "+event.Message)
	}
	slices.Sort(found)
	return found
}

func oneWidget(name string) *fixture.Widget {
	return &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// speaking runs an operator of widgets whose handler make speaks, and waits a minute.
func speaking(t *testing.T, make einmal.HandlerFunc[fixture.Widget], use func(*einmaltest.World), options ...einmal.OperatorOption) {
	t.Helper()
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity, append(options, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("default"))...)
			einmal.For[fixture.Widget](op).OnCreate("make", make)
			return op
		})
		w.Create(oneWidget("one"))
		w.Advance(time.Minute)
		use(w)
	})
}

func expectEvents(w *einmaltest.World, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, eventsOf(w)); diff != "" {
		w.Errorf("events (-want +got):\n%s", diff)
	}
}

// Scenario 106: a handler sends events about its object, in a form that the API server accepts and without secrets.
func TestHandlersSendEvents(t *testing.T) {
	speaking(t, func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Event(einmal.EventNormal, "Made", "made %d of %s", 2, "them")
		c.Event(einmal.EventNormal, "Made", "and 100% more")
		c.Event(einmal.EventWarning, "LoginRefused", "dial postgres://app:"+planted+"@db: refused")
		c.Event("Error", "Long", strings.Repeat("a", 2500)+strings.Repeat("z", 2500))
		return nil
	}, func(w *einmaltest.World) {
		expectEvents(w,
			"Normal Made Widget default/one: and 100% more",
			"Normal Made Widget default/one: made 2 of them",
			"Warning LoginRefused Widget default/one: dial postgres://app:***@db: refused",
			"Warning Long Widget default/one: "+strings.Repeat("a", 511)+"..."+strings.Repeat("z", 510),
		)
	})
}

// Events are aggregated: repetitions are counted, and new events are not lost.
func TestEventsThatAreAlikeAreCounted(t *testing.T) {
	speaking(t, func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Event(einmal.EventWarning, "NotYet", "not yet")
		c.Event(einmal.EventWarning, "NotYet", "attempt %d", (c.Attempt+1)/2)
		if c.Attempt < 4 {
			return einmal.RetryAfter(time.Second, errors.New("not yet"))
		}
		return nil
	}, func(w *einmaltest.World) {
		expectEvents(w,
			"Warning HandlerFailing Widget default/one: handler make has failed 3 times and will be retried: not yet (retry requested after 1s)",
			"Warning NotYet Widget default/one x2: attempt 1",
			"Warning NotYet Widget default/one x2: attempt 2",
			"Warning NotYet Widget default/one x4: not yet",
		)
	})
}

// Events of an operator with the longest identity arrive, also about an object with the longest name.
func TestALongIdentityHasEvents(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(strings.Repeat("a", 96)+".dev", einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("default"))
			einmal.For[fixture.Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				c.Event(einmal.EventNormal, "Made", "it is made")
				return nil
			})
			return op
		})
		name := strings.Repeat("n", 253)
		w.Create(oneWidget(name))
		w.Advance(time.Minute)
		expectEvents(w, "Normal Made Widget default/"+name+": it is made")
	})
}

// Many messages with the same reason are combined into one event, which has the newest message.
func TestManyMessagesOfOneReasonAreOneEvent(t *testing.T) {
	speaking(t, func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		for i := range 20 {
			c.Event(einmal.EventNormal, "Count", "%d", i)
		}
		return nil
	}, func(w *einmaltest.World) {
		found := eventsOf(w)
		if len(found) != 10 || !slices.Contains(found, "Normal Count Widget default/one x11: (combined from similar events): 19") {
			w.Errorf("events:\n%s", strings.Join(found, "\n"))
		}
	})
}

// Events of a handler are limited for each object. The framework's own events are not suppressed by them.
func TestAnObjectHasNoEndlessEvents(t *testing.T) {
	speaking(t, func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		for i := range 100 {
			c.Event(einmal.EventWarning, fmt.Sprint("Count", i), "one of many")
		}
		return einmal.Permanent(errors.New("no room"))
	}, func(w *einmaltest.World) {
		w.AllowUnfinished("make")
		w.Create(oneWidget("two"))
		w.Advance(time.Minute)
		found := strings.Join(eventsOf(w), "\n")
		for _, name := range []string{"one", "two"} {
			sent, failed := strings.Count(found, " Widget default/"+name+": one of many"), strings.Count(found, "HandlerFailed Widget default/"+name)
			if sent != 25 || failed != 1 {
				w.Errorf("%s: %d events of the handler and %d of the framework, want 25 and 1", name, sent, failed)
			}
		}
	})
}

// Scenario 106: there are no events about events.
func TestThereAreNoEventsAboutEvents(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("watch")
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity, einmal.EventsFromLogs(slog.LevelInfo))
			einmal.For[eventsv1.Event](op).OnEvent("watch", func(_ context.Context, c *einmal.Change[eventsv1.Event]) error {
				c.Event(einmal.EventNormal, "Seen", "seen")
				c.Log.Info("seen")
				return errors.New("seen")
			})
			return op
		})
		w.Create(&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, EventTime: metav1.NewMicroTime(time.Now()), Type: "Normal",
			ReportingController: "x.example.com", ReportingInstance: "x-1", Action: "Do", Reason: "Done", Note: "done",
			Regarding: corev1.ObjectReference{Namespace: "default"},
		})
		w.Advance(time.Hour)
		expectEvents(w, "Normal Done  default/: done")
		if len(w.Calls()) != 1 {
			w.Errorf("calls: %v", w.Calls())
		}
	})
}

// A handler that fails permanently, for whatever reason, is reported by an event.
func TestAFailureForGoodIsAnEvent(t *testing.T) {
	speaking(t, func(context.Context, *einmal.Change[fixture.Widget]) error {
		return einmal.Permanent(errors.New("no room for password=" + planted))
	}, func(w *einmaltest.World) {
		w.AllowUnfinished("make")
		expectEvents(w, "Warning HandlerFailed Widget default/one: handler make failed permanently and runs again "+
			"only when its fields change: no room for password=***")
	})
}

// Events from logs are opt-in.
func TestLogsAreEventsOnRequest(t *testing.T) {
	speak := func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		log := c.Log.With("db", "acme").WithGroup("server").With("port", 5432)
		log.Info("looking")
		log.Warn("slow", "took", time.Second, "token", planted)
		log.Error("lost", slog.Group("why", "error", errors.New("password="+planted)))
		return nil
	}
	speaking(t, speak, func(w *einmaltest.World) { expectEvents(w) })
	speaking(t, speak, func(w *einmaltest.World) {
		expectEvents(w,
			"Warning Logging Widget default/one: lost db=acme server.port=5432 server.why.error=password=***",
			"Warning Logging Widget default/one: slow db=acme server.port=5432 server.took=1s server.token=***",
		)
	}, einmal.EventsFromLogs(slog.LevelWarn))
	speaking(t, speak, func(w *einmaltest.World) {
		if found := eventsOf(w); len(found) != 3 || found[0] != "Normal Logging Widget default/one: looking db=acme server.port=5432" {
			w.Errorf("events: %v", found)
		}
	}, einmal.EventsFromLogs(slog.LevelDebug))
}
