package report

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	eventrecord "k8s.io/client-go/tools/record"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
)

// reported is what came out of a Kind: the lines of the log, and the events of Einmal.
type reported struct {
	kind   *Kind
	log    strings.Builder
	events *eventrecord.FakeRecorder
	// attempts are the outcomes that OnAttempt got.
	attempts []record.Outcome
}

func newReported(t *testing.T, kind string) *reported {
	t.Helper()
	all, err := metrics.Register(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	const room = 100
	r := &reported{events: eventrecord.NewFakeRecorder(room)}
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	r.kind = &Kind{
		Identity: "op.example.com", GVK: schema.GroupVersionKind{Version: "v1", Kind: kind}, Redactor: redact.New(),
		Log:     slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
		Events:  &Events{handlers: eventrecord.NewFakeRecorder(room), own: r.events},
		Metrics: all.Kind("op.example.com", kind),
		OnAttempt: func(_ types.NamespacedName, _ handler.Run, outcome record.Outcome) {
			r.attempts = append(r.attempts, outcome)
		},
	}
	return r
}

// about returns what reports on an object of the kind.
func (r *reported) about() Object {
	return r.kind.About(types.NamespacedName{Namespace: "default", Name: "a"}, object.Body{
		"metadata": object.Body{"namespace": "default", "name": "a", "generation": int64(2)},
	})
}

// take returns the lines and events since the last call.
func (r *reported) take() (lines, events []string) {
	lines = strings.Split(strings.TrimSpace(r.log.String()), "\n")
	r.log.Reset()
	for len(r.events.Events) > 0 {
		events = append(events, <-r.events.Events)
	}
	return lines, events
}

func TestTheEndOfAnAttemptIsReported(t *testing.T) {
	run := func(verb cause.Cause, attempt int) handler.Run {
		return handler.Run{Declaration: handler.Declaration{ID: "h", Verb: verb}, Reason: verb, Attempt: attempt}
	}
	failure := errors.New("no route")
	const prefix = "object=default/a generation=2 handler=h reason="
	for _, test := range []struct {
		name   string
		ended  Ended
		lines  []string
		events []string
	}{
		{"it succeeded", Ended{Run: run(cause.Create, 1), Result: handler.Result{Outcome: record.Done}}, []string{
			`level=INFO msg="handler succeeded" ` + prefix + `create attempt=1 took=20ms`,
		}, nil},
		{"a first failure has no event", Ended{
			Run: run(cause.Create, 1), Result: handler.Result{Outcome: record.Retry, Delay: time.Second}, Err: failure,
		}, []string{
			`level=ERROR msg="handler failed, will retry" ` + prefix + `create attempt=1 took=20ms retryIn=1s error="no route"`,
		}, nil},
		{"a third failure has one", Ended{
			Run: run(cause.Create, 3), Result: handler.Result{Outcome: record.Retry, Delay: time.Second}, Err: failure,
		}, []string{
			`level=ERROR msg="handler failed, will retry" ` + prefix + `create attempt=3 took=20ms retryIn=1s error="no route"`,
		}, []string{"Warning HandlerFailing handler h has failed 3 times and will be retried: no route"}},
		{"a delete handler that gives up blocks the deletion", Ended{
			Run: run(cause.Delete, 5), Result: handler.Result{Outcome: record.Failed, GaveUp: "5 attempts"}, Err: failure,
		}, []string{
			`level=ERROR msg="handler failed permanently, will run again when its fields change" ` + prefix +
				`delete attempt=5 took=20ms gaveUp="5 attempts" error="no route"`,
			`level=WARN msg="deletion blocked by failed handler" object=default/a generation=2 handler=h remedy="op.example.com/release=h"`,
		}, []string{
			"Warning HandlerFailed handler h failed permanently and runs again only when its fields change: no route",
			"Warning DeletionBlocked delete handler h failed permanently and blocks the deletion. To run it again, fix the cause and change the object; " +
				"to delete the object without it, set the annotation op.example.com/release to h",
		}},
		{"a programming error that is known is a warning", Ended{
			Run: run(cause.Update, 2), Result: handler.Result{Outcome: record.Retry, Broken: true}, Err: failure, Again: true,
		}, []string{
			`level=WARN msg="handler has a programming error, will run again in a new process" ` + prefix + `update attempt=2 took=20ms error="no route"`,
		}, []string{"Warning HandlerFailing handler h has a programming error, and runs again in a new process or when its fields change: no route"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newReported(t, "Widget")
			test.ended.Took = 20 * time.Millisecond
			r.about().AttemptEnded(test.ended)
			lines, events := r.take()
			if diff := cmp.Diff(test.lines, lines); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]record.Outcome{test.ended.Result.Outcome}, r.attempts); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADeleteHandlerWithoutAFinalizerThatGivesUpBlocksNothing(t *testing.T) {
	r := newReported(t, "Widget")
	optional := handler.Declaration{ID: "h", Verb: cause.Delete, Optional: true}
	r.about().AttemptEnded(Ended{
		Run:    handler.Run{Declaration: optional, Reason: cause.Delete, Attempt: 5},
		Result: handler.Result{Outcome: record.Failed, GaveUp: "5 attempts"}, Err: errors.New("no route"),
	})
	lines, events := r.take()
	if all := strings.Join(slices.Concat(lines, events), "\n"); len(lines) != 1 || len(events) != 1 || strings.Contains(all, "block") {
		t.Errorf("got these lines and events, want a line and an event about the failure, and none about a blocked deletion:\n%s", all)
	}
}

func TestAHandlerThatKeepsFailingHasAnEventAfterTheThirdAndAfterEveryTenthFailure(t *testing.T) {
	r := newReported(t, "Widget")
	var attempts []int
	for attempt := 1; attempt <= 30; attempt++ {
		r.about().AttemptEnded(Ended{
			Run: handler.Run{Declaration: handler.Declaration{ID: "h"}, Attempt: attempt}, Result: handler.Result{Outcome: record.Retry}, Err: errors.New("no route"),
		})
		if _, events := r.take(); len(events) > 0 {
			attempts = append(attempts, attempt)
			want := []string{fmt.Sprintf("Warning HandlerFailing handler h has failed %d times and will be retried: no route", attempt)}
			if diff := cmp.Diff(want, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		}
	}
	if diff := cmp.Diff([]int{3, 10, 20, 30}, attempts); diff != "" {
		t.Errorf("attempts with an event (-want +got):\n%s", diff)
	}
}

func TestAFieldThatTwoHandlersWriteIsReportedOnceForItsKind(t *testing.T) {
	r := newReported(t, "Widget")
	fields := []journal.Overwritten{{Field: "status.url", Earlier: "a"}, {Field: "status.port", Earlier: "a"}}
	r.about().StatusConflict("b", fields[:1])
	if lines, events := r.take(); len(lines) != 1 || len(events) != 1 {
		t.Errorf("the first time: %q, %q, want one line and one event", lines, events)
	}
	r.about().StatusConflict("b", fields)
	lines, events := r.take()
	if len(lines) != 1 || !strings.Contains(lines[0], "field=status.port") {
		t.Errorf("the second time: %q, want a line about status.port alone", lines)
	}
	if want := []string{"Warning StatusConflict conflicting status writes by handlers; kept the value from b: " +
		"status.port (earlier value from a). Let one handler write each field and declare it with OwnsStatus"}; !cmp.Equal(want, events) {
		t.Errorf("events %q, want %q", events, want)
	}
}

func TestTheValuesOfASecretAreInNoEventAboutIt(t *testing.T) {
	r := newReported(t, "Secret")
	about := r.kind.About(types.NamespacedName{Namespace: "default", Name: "a"}, object.Body{
		"metadata": object.Body{"namespace": "default", "name": "a"}, "data": object.Body{"x": "aHVudGVyMjI="},
	})
	about.ChangesRejected(handler.Run{Declaration: handler.Declaration{ID: "h"}}, handler.Result{Outcome: record.Failed}, "the value hunter22 is wrong")
	if _, events := r.take(); len(events) != 1 || strings.Contains(fmt.Sprint(events), hidden) || !strings.Contains(events[0], redact.Mask) {
		t.Errorf("events %q, want one with the value redacted", events)
	}
}

func TestThereAreNoEventsAboutEvents(t *testing.T) {
	r := newReported(t, "Event")
	r.about().RecordLost()
	if lines, events := r.take(); len(lines) != 1 || len(events) > 0 {
		t.Errorf("log %q, events %q, want a line and no event", lines, events)
	}
}
