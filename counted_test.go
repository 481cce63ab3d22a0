package einmal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// billing is a life of a handler with CountCrashes that sends an invoice.
type billing struct {
	// update makes it an update handler of the color.
	update bool
	// call is what sending the invoice returns, then what the handler returns after it.
	call, then error
	// colors are given to the object in turn. At the color hang the handler does not return, and the process is killed.
	colors []string
	hang   string
}

// The write that counts an attempt (CountCrashes) keeps the effects of earlier attempts, with and without a result. So a crash in that attempt
// does not repeat a call.
func TestACrashInACountedAttemptRepeatsNoCall(t *testing.T) {
	final, later := einmal.Permanent(errors.New("it cannot go on")), einmal.RetryAfter(time.Minute, errors.New("not yet"))
	for name, test := range map[string]billing{
		"after a failure for good, the result is unknown":   {call: errors.New("no answer"), hang: "red"},
		"after a failure for good, with a result":           {then: final, hang: "red"},
		"after a change that was taken back, with a result": {update: true, then: later, colors: []string{"red", "blue"}, hang: "red"},
	} {
		t.Run(name, func(t *testing.T) { einmaltest.Run(t, test.play) })
	}
}

func (b billing) play(w *einmaltest.World) {
	w.AllowUnfinished("bill")
	ran, hangs := &trail{}, false
	bill := func(ctx context.Context, c *einmal.Change[Widget]) error {
		if hangs {
			return pause(ctx, time.Hour)
		}
		_, err := einmal.Effect(ctx, c, "invoice", einmal.RecoverByHand(func(context.Context) (Account, error) {
			return Account{Number: 7}, errors.Join(ran.run("send"), b.call)
		}))
		return errors.Join(err, b.then)
	}
	ofWidgets(w, func(widgets *einmal.Kind[Widget]) {
		if b.update {
			widgets.OnUpdate("bill", bill, einmal.CountCrashes(), einmal.Fields("spec.color"))
		} else {
			widgets.OnCreate("bill", bill, einmal.CountCrashes())
		}
	})
	paint := func(color string) { w.Patch(newWidget(), fmt.Sprintf(`{"spec":{"color":%q}}`, color)) }
	w.Advance(time.Second)
	w.Create(newWidget())
	w.Advance(5 * time.Minute)
	for _, color := range b.colors {
		paint(color)
		w.Advance(2 * time.Minute)
	}
	hangs = true
	paint(b.hang)
	w.Advance(2 * time.Minute)
	w.Kill()
	hangs = false
	w.Restart()
	w.Advance(10 * time.Minute)
	expectRan(w, ran, "send")
}

// Only attempts that begin are counted. If the count cannot be written, the handler is not called and is called later with the same attempt
// number. This also holds if only the response to the write was lost.
func TestAnAttemptThatDoesNotBeginIsNotCounted(t *testing.T) {
	for name, arrives := range map[string]func(http.Handler, *http.Request){
		"the write is refused": func(http.Handler, *http.Request) {},
		"the answer is lost":   func(next http.Handler, r *http.Request) { next.ServeHTTP(httptest.NewRecorder(), r) },
	} {
		for _, many := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, MaxAttempts(%d)", name, many), func(t *testing.T) { countsWhatBegins(t, arrives, many) })
		}
	}
}

func countsWhatBegins(t *testing.T, arrives func(http.Handler, *http.Request), many int) {
	t.Helper()
	j, first := &journal{}, 0
	declare := func(op *einmal.Operator) {
		widgets := einmal.For[Widget](op)
		widgets.OnCreate("first", func(context.Context, *einmal.Change[Widget]) error { first++; return nil })
		widgets.OnCreate("bill", func(_ context.Context, c *einmal.Change[Widget]) error {
			j.add(c.Object.Name, fmt.Sprintf("attempt %d", c.Attempt))
			if c.Attempt < many {
				return errors.New("not yet")
			}
			return nil
		}, einmal.CountCrashes(), einmal.MaxAttempts(many))
	}
	virtually(t, testLog(t), declare, func(t *testing.T, w *virtualWorld) {
		failures := 2
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if failures == 0 || !writes(t, r, "the attempt did not end") {
				next.ServeHTTP(answer, r)
				return
			}
			failures--
			arrives(next, r)
			refuse(answer, http.StatusInternalServerError, "InternalError")
		})
		must(t, w.User.Create(t.Context(), widgetNamed("one")))
		w.Pass(10 * time.Minute)
		want := []string{"attempt 1", "attempt 2", "attempt 3"}[:many]
		if got := j.of("one"); !slices.Equal(got, want) || first != 1 {
			t.Errorf("it was called as %q, want %q; the handler before it %d times", got, want, first)
		}
	})
}

// writes reports whether a request is a patch with these words.
func writes(t *testing.T, r *http.Request, words string) bool {
	t.Helper()
	if r.Method != http.MethodPatch {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(words))
}
