package virtual_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// answerNotFound makes the API server answer the first n requests that match with 404. The answer names an object, as that of
// a missing subresource does, or nothing, as that of a server without the API version.
func answerNotFound(w *virtualWorld, n int64, name string, matches func(*http.Request) bool) {
	var answered atomic.Int64
	w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if !matches(r) || answered.Add(1) > n {
			next.ServeHTTP(answer, r)
			return
		}
		if name == "" {
			http.Error(answer, "404 page not found", http.StatusNotFound)
			return
		}
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(answer).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("widgets.%s %q not found", fixture.Group, name),
			Details: &metav1.StatusDetails{Group: fixture.Group, Kind: "widgets", Name: name},
		})
	})
}

// patchOfOne matches the operator's own writes of the object "one": users of these tests send merge patches.
func patchOfOne() func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Header.Get("Content-Type") == string(types.JSONPatchType) && strings.Contains(r.URL.Path, "/widgets/one")
	}
}

func getOfOne() func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/widgets/one")
	}
}

// A 404 that is not about the object costs a retry. The object is handled further, and nothing runs twice.
func TestNotFoundForAnotherReasonDoesNotSilenceAnObject(t *testing.T) {
	for name, fail := range map[string]func(*virtualWorld){
		"the subresource is missing": func(w *virtualWorld) { answerNotFound(w, 1, "one", patchOfOne()) },
		"the version is not served by this API server": func(w *virtualWorld) {
			answerNotFound(w, 1, "", patchOfOne())
		},
		"reads fail as well": func(w *virtualWorld) {
			answerNotFound(w, 1, "", patchOfOne())
			answerNotFound(w, 3, "", getOfOne())
		},
		"for an hour": func(w *virtualWorld) {
			end := time.Now().Add(time.Hour)
			answerNotFound(w, math.MaxInt64, "one", func(r *http.Request) bool { return patchOfOne()(r) && time.Now().Before(end) })
		},
		"a read claims that the object is gone": func(w *virtualWorld) {
			answerNotFound(w, 1, "one", patchOfOne())
			answerNotFound(w, 1, "one", getOfOne())
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
				widgets := einmal.For[fixture.Widget](op)
				widgets.OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error {
					calls = append(calls, "make")
					return nil
				})
				widgets.OnUpdate("resize", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
					calls = append(calls, fmt.Sprint("resize to ", c.Object.Spec.Size))
					return nil
				}, einmal.Fields("spec.size"))
			}, func(t *testing.T, w *virtualWorld) {
				one := fixture.NewRedWidget("one")
				fixture.Must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				fail(w)
				for size := 2; size <= 4; size++ {
					fixture.Must(t, w.User.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, size))))
					w.Pass(2 * time.Hour)
				}
			})
			if got := fmt.Sprint(calls); got != "[make resize to 2 resize to 3 resize to 4]" {
				t.Errorf("the calls were %s", got)
			}
		})
	}
}

// A daemon goes on when a write of its object is answered with a 404 that is not about the object.
func TestNotFoundForAnotherReasonEndsNoDaemon(t *testing.T) {
	started := 0
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnUpdate("resize", fixture.Nothing[fixture.Widget])
		widgets.Daemon("watch", func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
			started++
			<-ctx.Done()
			return nil
		}, einmal.WithoutFinalizer())
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		answerNotFound(w, 1, "one", patchOfOne())
		merge(t, w, one, "", `{"spec":{"size":2}}`)
		w.Pass(time.Hour)
		answerNotFound(w, 1, "", patchOfOne())
		answerNotFound(w, 1, "", getOfOne())
		merge(t, w, one, "", `{"spec":{"size":3}}`)
		w.Pass(time.Hour)
		if started != 1 {
			t.Errorf("the daemon was started %d times, want once", started)
		}
	})
}

// An object that the API server says is gone, and that the cache still shows, is read again after a while: what was done is recorded then.
func TestAnObjectThatCountsAsGoneIsReadAgain(t *testing.T) {
	resized := 0
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnUpdate("resize", func(context.Context, *einmal.Change[fixture.Widget]) error {
			resized++
			return nil
		})
		widgets.Daemon("watch", func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
			<-ctx.Done()
			return nil
		}, einmal.WithoutFinalizer())
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		answerNotFound(w, 1, "one", patchOfOne())
		answerNotFound(w, 1, "one", getOfOne())
		merge(t, w, one, "", `{"spec":{"size":2}}`)
		w.Pass(2 * time.Minute)
		w.restart(func() {})
		w.Pass(time.Minute)
	})
	if resized != 1 {
		t.Errorf("the handler ran %d times, want once", resized)
	}
}

// An object that is deleted while its handler runs is no failure, and nothing is logged as one: its progress has no place any more.
func TestAnObjectThatIsGoneWhileItsHandlerRunsIsNoFailure(t *testing.T) {
	log, ended := &fixture.Log{}, false
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			for _, step := range []string{"first", "second"} {
				<-time.After(time.Minute)
				if err := einmal.Step(ctx, c, step, func(context.Context) error { return nil }); err != nil {
					return err
				}
			}
			<-time.After(time.Minute)
			ended = true
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(90 * time.Second)
		fixture.Must(t, w.User.Delete(t.Context(), one))
		w.Pass(5 * time.Minute)
	})
	if !ended {
		t.Error("the handler did not end")
	}
	for _, level := range []string{"level=WARN", "level=ERROR"} {
		if n := log.Count(level, "object=default/one"); n > 0 {
			t.Errorf("%d lines with %s, want none:\n%s", n, level, log)
		}
	}
}
