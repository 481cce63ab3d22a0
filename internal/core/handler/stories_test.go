package handler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// story is how a record of the corpus came about. The names of stories that leave nothing to do begin with "closed".
type story struct {
	name, about string
	handlers    []handler.Declaration
	play        func(*life)
}

func (s story) live(t *testing.T) *life {
	t.Helper()
	l := newLife(t, s.handlers...)
	l.essence = spec("size", 1, "color", "red")
	for _, declared := range s.handlers {
		l.resumed[declared.ID] = declared.Verb == cause.Resume // The process that handles the creation does not resume the object.
	}
	s.play(l)
	return l
}

func stories() []story {
	return append(append(closedStories(), closedLargeStories()...), append(append(openStories(), scopeStories()...), append(failedStories(), deletionStories()...)...)...)
}

func makeAndResize() []handler.Declaration {
	return []handler.Declaration{declared("make", cause.Create), declared("resize", cause.Update, "spec.size")}
}

func once(l *life) { l.pass() }

func closedStories() []story {
	return []story{
		{"closed-created", "created, with nothing left to do", makeAndResize(), once},
		{
			"closed-with-finalizer", "created, with a delete handler declared",
			append(makeAndResize(), declared("unmake", cause.Delete)), once,
		},
		{"closed-updated", "changed since its creation", makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.pass()
		}},
		{"closed-resumed", "seen by a second process", append(makeAndResize(), declared("greet", cause.Resume)), func(l *life) {
			l.pass()
			l.restart()
			l.pass()
		}},
		{"closed-metadata", "labels and annotations are part of what was seen", []handler.Declaration{
			declared("label", cause.Update, "metadata.labels"), declared("all", cause.Update),
		}, func(l *life) {
			l.essence["metadata"] = object.Body{
				"labels":      object.Body{"team": "a"},
				"annotations": object.Body{"example.com/note": "<a> & ü \u2028 \"b\""},
			}
			l.pass()
		}},
		{"closed-status-field", "a handler looks at the status", []handler.Declaration{declared("phase", cause.Update, "status.phase")}, func(l *life) {
			l.essence["status"] = object.Body{"phase": "Ready"}
			l.pass()
		}},
		{"closed-empty", "an object with nothing but a name", []handler.Declaration{declared("all", cause.Update)}, func(l *life) {
			l.essence = object.Body{}
			l.pass()
		}},
		{"closed-lost", "its record was lost while the operator was down", makeAndResize(), func(l *life) {
			l.settled, l.recreate = true, "used before"
			l.pass()
		}},
		{"closed-recreated", "a user requested another run of the create handlers", makeAndResize(), func(l *life) {
			l.pass()
			l.recreate = "please"
			l.pass()
		}},
	}
}

func closedLargeStories() []story {
	watched := []handler.Declaration{declared("resize", cause.Update, "spec.size"), declared("all", cause.Update)}
	annotated := func(text string) func(*life) {
		return func(l *life) {
			l.essence["metadata"] = object.Body{"annotations": object.Body{"example.com/note": text}}
			l.pass()
		}
	}
	return []story{
		{"closed-packed", "the seen essence is compressed", watched, annotated(strings.Repeat("all work and no play ", 100))},
		{"closed-digests", "the seen essence is too large to keep", watched, annotated(noise())},
		{
			"closed-digests-unset", "the seen essence is too large to keep, and a field that a handler looks at is not set",
			append(watched, declared("paint", cause.Update, "spec.color")), func(l *life) {
				l.essence = spec("size", 1)
				annotated(noise())(l)
			},
		},
	}
}

func openStories() []story {
	three := []handler.Declaration{declared("one", cause.Update), declared("two", cause.Update), declared("three", cause.Update, "spec.color")}
	return []story{
		{"open-create", "one create handler has finished, one is retried, one waits, one failed permanently", append([]handler.Declaration{
			declared("first", cause.Create), declared("second", cause.Create), declared("third", cause.Create),
			declared("fourth", cause.Create), declared("unmake", cause.Delete),
		}, makeAndResize()...), func(l *life) {
			l.results["second"] = handler.Result{Outcome: record.Retry, Delay: time.Minute, Message: strings.Repeat("no luck: „ü“ ", 50)}
			l.results["third"] = handler.Result{Outcome: record.Waiting, Delay: 90 * time.Second, Asked: true}
			l.results["fourth"] = handler.Result{Outcome: record.Failed, Message: "never"}
			l.pass()
		}},
		{"open-create-stopped", "stopped after the first of two create handlers", []handler.Declaration{
			declared("first", cause.Create), declared("second", cause.Create),
		}, func(l *life) {
			plan := l.kind.Decide(l.state())
			done := l.kind.Fold(plan.Record, plan.Runs[0], handler.Result{Outcome: record.Done}, l.essence, l.now)
			l.store(l.kind.Settle(done, l.essence))
		}},
		{"open-create-edited", "edited while a create handler is retried", append(makeAndResize(), declared("slow", cause.Create)), func(l *life) {
			l.fail("slow", time.Minute)
			l.pass()
			l.resize(2)
			l.pass()
		}},
		{"open-update", "one update handler has seen more than the others", three, func(l *life) {
			l.pass()
			l.fail("two", time.Minute)
			l.results["three"] = handler.Result{Outcome: record.Retry, Delay: time.Hour, Asked: true, Message: "later"}
			l.essence = spec("size", 2, "color", "blue")
			l.pass()
			l.resize(3)
			l.pass()
		}},
		{"open-resume", "a resume handler is retried", append(makeAndResize(), declared("greet", cause.Resume)), func(l *life) {
			l.pass()
			l.restart()
			l.fail("greet", time.Minute)
			l.pass()
		}},
		{"open-steps", "two steps of a retried create handler are done, one with a result", makeAndResize(), func(l *life) {
			l.results["make"] = handler.Result{Outcome: record.Retry, Delay: time.Minute, Message: "no luck", Steps: map[string]record.Step{
				"account": {Result: []byte(`{"id":"<a> & ü"}`)}, "members/b": {},
			}}
			l.pass()
		}},
		{"open-steps-mixed", "one of two steps of an update handler was done before another edit", makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.results["resize"] = handler.Result{Outcome: record.Retry, Delay: time.Minute, Message: "no luck", Steps: stepsDone("a")}
			l.pass()
			l.resize(3)
			l.results["resize"] = handler.Result{Outcome: record.Retry, Delay: time.Minute, Message: "no luck", Steps: stepsDone("a", "b")}
			l.pass()
		}},
		{"open-effect", "an effect of a retried create handler has no result, another one has", makeAndResize(), func(l *life) {
			l.results["make"] = handler.Result{Outcome: record.Retry, Delay: time.Minute, Message: "no luck", Steps: withEffects("line")}
			l.pass()
		}},
		{"open-recreate", "the create handlers run again, and one is retried", append(makeAndResize(), declared("more", cause.Create)), func(l *life) {
			l.pass()
			l.recreate = "please"
			l.fail("more", time.Minute)
			l.pass()
		}},
	}
}

func scopeStories() []story {
	redMake, redResize := declared("red-make", cause.Create, "spec.color=red"), declared("red-resize", cause.Update, "spec.size", "spec.color=red")
	atOnce := declared("watch", cause.Update, "spec.size", atCreation)
	return []story{
		{"outside", "two handlers match other objects only", append(makeAndResize(), redMake, redResize), func(l *life) {
			l.essence = spec("size", 1, "color", "blue")
			l.pass()
		}},
		{"outside-again", "it matched two handlers, and does not match them any more", append(makeAndResize(), redMake, redResize), func(l *life) {
			l.pass()
			l.essence = spec("size", 1, "color", "blue")
			l.pass()
		}},
		{"open-late", "it began to match two handlers, and the creation of one of them is retried", append(makeAndResize(), redMake, redResize), func(l *life) {
			l.essence = spec("size", 1, "color", "blue")
			l.pass()
			l.essence = spec("size", 1, "color", "red")
			l.fail("red-make", time.Minute)
			l.pass()
		}},
		{"open-at-creation", "a field handler also handles the creation, and is retried", append(makeAndResize(), atOnce), func(l *life) {
			l.fail("watch", time.Minute)
			l.pass()
		}},
	}
}

func failedStories() []story {
	return []story{
		{"failed-create", "the create handler failed permanently", makeAndResize(), func(l *life) {
			l.results["make"] = handler.Result{Outcome: record.Failed, Message: "never"}
			l.pass()
		}},
		{"failed-update", "an update handler failed permanently", append(makeAndResize(), declared("all", cause.Update)), func(l *life) {
			l.pass()
			l.results["resize"] = handler.Result{Outcome: record.Failed, Message: "never"}
			l.resize(2)
			l.pass()
		}},
	}
}

func deletionStories() []story {
	handlers := func() []handler.Declaration {
		return append(makeAndResize(), declared("one", cause.Delete), declared("two", cause.Delete), declared("three", cause.Delete))
	}
	return []story{
		{"deletion-open", "one delete handler has finished, one is retried, one failed permanently", handlers(), func(l *life) {
			l.pass()
			l.deleting = true
			l.fail("two", time.Minute)
			l.results["three"] = handler.Result{Outcome: record.Failed, Message: "never"}
			l.pass()
		}},
		{"deletion-before-creation", "deleted while its creation is open", handlers(), func(l *life) {
			l.fail("make", time.Hour)
			l.pass()
			l.deleting = true
			l.fail("two", time.Minute)
			l.pass()
		}},
		{"deletion-done", "other finalizers keep it", handlers(), func(l *life) {
			l.pass()
			l.deleting = true
			l.pass()
		}},
	}
}

func (l *life) resize(to int) {
	l.essence = object.With(l.essence, object.Path{"spec", "size"}, int64(to))
}

func (l *life) store(r record.Record) {
	l.t.Helper()
	text, err := r.Encode()
	if err != nil {
		l.t.Fatal(err)
	}
	l.stored = text
}

// noise returns text that does not compress and is too large to be stored.
func noise() string {
	text := make([]byte, 0, record.EssenceLimit+1)
	for state := uint32(1); len(text) < cap(text); state = state*1664525 + 1013904223 {
		text = append(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[state>>26])
	}
	return string(text)
}
