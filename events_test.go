package einmal_test

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
)

// eventsOf lists the events of operators, each as TYPE REASON KIND NAMESPACE/NAME by ACTION xCOUNT: NOTE.
func eventsOf(w *einmaltest.World) []string {
	w.Helper()
	var list eventsv1.EventList
	if err := w.Client().List(w.Context(), &list); err != nil {
		w.Fatal(err)
	}
	var found []string
	for _, event := range list.Items {
		if event.ReportingController == "" {
			continue
		}
		line := fmt.Sprintf("%s %s %s %s/%s by %s", event.Type, event.Reason, event.Regarding.Kind, event.Regarding.Namespace, event.Regarding.Name, event.Action)
		if event.Series != nil {
			line += fmt.Sprintf(" x%d", event.Series.Count)
		}
		found = append(found, line+": "+event.Note)
	}
	slices.Sort(found)
	return found
}

func oneWidget(name string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// speaking runs an operator of widgets whose handler make speaks, and waits a minute.
func speaking(t *testing.T, make einmal.HandlerFunc[Widget], use func(*einmaltest.World), options ...einmal.OperatorOption) {
	t.Helper()
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(testIdentity, append(options, einmal.Scheme(addTestKinds), einmal.CRDs(testKinds(w)), einmal.StateNamespace("default"))...)
			einmal.For[Widget](op).OnCreate("make", make)
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
	speaking(t, func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Event(einmal.EventNormal, "Made", "made %d of %s", 2, "them")
		c.Event(einmal.EventNormal, "Made", "and 100% more")
		c.Event(einmal.EventWarning, "login refused", "dial postgres://app:"+planted+"@db: refused")
		c.Event("Error", "", strings.Repeat("a", 2500)+strings.Repeat("z", 2500))
		return nil
	}, func(w *einmaltest.World) {
		expectEvents(w,
			"Normal Made Widget default/one by make/2: and 100% more",
			"Normal Made Widget default/one by make: made 2 of them",
			"Warning LoginRefused Widget default/one by make: dial postgres://app:***@db: refused",
			"Warning Unspecified Widget default/one by make: "+strings.Repeat("a", 511)+"..."+strings.Repeat("z", 510),
		)
	})
}

// Events are aggregated: repetitions are counted, and new events are not lost.
func TestEventsThatAreAlikeAreCounted(t *testing.T) {
	speaking(t, func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Event(einmal.EventWarning, "NotYet", "not yet")
		c.Event(einmal.EventWarning, "NotYet", "attempt %d", (c.Attempt+1)/2)
		if c.Attempt < 4 {
			return einmal.RetryAfter(time.Second, errors.New("not yet"))
		}
		return nil
	}, func(w *einmaltest.World) {
		w.Advance(time.Hour) // The counts of series are sent when they have ended.
		expectEvents(w,
			"Warning HandlerFailing Widget default/one by make: handler make has failed 3 times and will be retried: not yet (retry requested after 1s)",
			"Warning NotYet Widget default/one by make x2: attempt 2",
			"Warning NotYet Widget default/one by make x4: not yet",
			"Warning NotYet Widget default/one by make/2 x2: attempt 1",
		)
	})
}

// Events are rate-limited by object.
func TestAnObjectHasNoEndlessEvents(t *testing.T) {
	speaking(t, func(_ context.Context, c *einmal.Change[Widget]) error {
		for i := range 100 {
			c.Event(einmal.EventNormal, "Count", "%d", i)
		}
		return einmal.RequeueAfter(time.Hour)
	}, func(w *einmaltest.World) {
		w.AllowUnfinished("make")
		if found := eventsOf(w); len(found) != 25 {
			w.Errorf("%d events, want a burst of 25:\n%s", len(found), strings.Join(found, "\n"))
		}
		w.Advance(time.Hour)
		if found := eventsOf(w); len(found) < 25+12 || len(found) > 25+13 {
			w.Errorf("%d events after an hour, want one in five minutes", len(found))
		}
		w.Create(oneWidget("two"))
		w.Advance(time.Minute)
		of := func(line string) bool { return strings.Contains(line, "default/two") }
		if others := slices.DeleteFunc(eventsOf(w), func(line string) bool { return !of(line) }); len(others) != 25 {
			w.Errorf("%d events of another object, want 25", len(others))
		}
	})
}

// Scenario 106: there are no events about events.
func TestThereAreNoEventsAboutEvents(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("watch")
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(testIdentity, einmal.EventsFromLogs(slog.LevelInfo))
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
		expectEvents(w, "Normal Done  default/ by Do: done")
		if len(w.Calls()) != 1 {
			w.Errorf("calls: %v", w.Calls())
		}
	})
}

// A handler that fails permanently, for whatever reason, is reported by an event.
func TestAFailureForGoodIsAnEvent(t *testing.T) {
	speaking(t, func(context.Context, *einmal.Change[Widget]) error {
		return einmal.Permanent(errors.New("no room for password=" + planted))
	}, func(w *einmaltest.World) {
		w.AllowUnfinished("make")
		expectEvents(w, "Warning HandlerFailed Widget default/one by make: handler make failed permanently and runs again "+
			"only when its fields change: no room for password=***")
	})
}

// Events from logs are opt-in.
func TestLogsAreEventsOnRequest(t *testing.T) {
	speak := func(_ context.Context, c *einmal.Change[Widget]) error {
		log := c.Log.With("db", "acme").WithGroup("server").With("port", 5432)
		log.Info("looking")
		log.Warn("slow", "took", time.Second, "token", planted)
		log.Error("lost", slog.Group("why", "error", errors.New("password="+planted)))
		return nil
	}
	speaking(t, speak, func(w *einmaltest.World) { expectEvents(w) })
	speaking(t, speak, func(w *einmaltest.World) {
		expectEvents(w,
			"Warning Logging Widget default/one by make/2: lost db=acme server.port=5432 server.why.error=password=***",
			"Warning Logging Widget default/one by make: slow db=acme server.port=5432 server.took=1s server.token=***",
		)
	}, einmal.EventsFromLogs(slog.LevelWarn))
	speaking(t, speak, func(w *einmaltest.World) {
		if found := eventsOf(w); len(found) != 3 || found[0] != "Normal Logging Widget default/one by make: looking db=acme server.port=5432" {
			w.Errorf("events: %v", found)
		}
	}, einmal.EventsFromLogs(slog.LevelDebug))
}
