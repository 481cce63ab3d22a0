package virtual_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// An API server that refuses to list for a while causes only a delay: the operator reports that it is not ready, and serves when it can
// (scenario 89).
func TestRefusedListsAreTriedUntilTheyAreAnswered(t *testing.T) {
	for code, reason := range map[int]string{
		http.StatusInternalServerError: "InternalError", http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound",
	} {
		t.Run(reason, func(t *testing.T) { listsAreRefused(t, code, reason) })
	}
}

func listsAreRefused(t *testing.T, code int, reason string) {
	t.Helper()
	j := &fixture.Journal{}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { fixture.StatusCarrier().Declare(op, fixture.Plan{Journal: j}) }, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Minute)
		w.Stop()
		if err := w.User.Create(t.Context(), widgetNamed("early")); err != nil {
			t.Fatal(err)
		}
		refused := 0
		remove := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/widgets") && r.Method == http.MethodGet {
				refused++
				refuse(answer, code, reason)
				return
			}
			next.ServeHTTP(answer, r)
		})
		w.start()
		w.Pass(5 * time.Minute)
		if len(j.Of("early")) != 0 || refused == 0 || refused > 5*60 {
			t.Errorf("after %d refusals in five minutes it was called %q", refused, j.Of("early"))
		}
		remove()
		w.Pass(2 * time.Minute)
		if got := j.Of("early"); !slices.Equal(got, []string{"make (create, attempt 1)"}) {
			t.Errorf("when lists are answered again it is called %q", got)
		}
	})
}

// refuse answers as an API server does that will not.
func refuse(answer http.ResponseWriter, code int, reason string) {
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(code)
	_, _ = fmt.Fprintf(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

func widgetNamed(name string) *fixture.Widget {
	return &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

// Einmal waits as long as an API server asks for (Retry-After), and the handler is not called again because of that (scenario 90).
func TestTheWaitThatAnAPIServerAsksForIsKept(t *testing.T) {
	const wait = 7 * time.Second
	j := &fixture.Journal{}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { fixture.StatusCarrier().Declare(op, fixture.Plan{Journal: j}) }, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Minute)
		var asked []time.Time
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/widgets/") {
				asked = append(asked, time.Now())
				if len(asked) == 1 {
					answer.Header().Set("Retry-After", fmt.Sprint(wait.Seconds()))
					refuse(answer, http.StatusTooManyRequests, "TooManyRequests")
					return
				}
			}
			next.ServeHTTP(answer, r)
		})
		if err := w.User.Create(t.Context(), widgetNamed("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		if len(asked) != 2 || asked[1].Sub(asked[0]) < wait {
			t.Errorf("it was asked at %v, want twice, %s apart", asked, wait)
		}
		if got := j.Of("one"); !slices.Equal(got, []string{"make (create, attempt 1)"}) {
			t.Errorf("calls: %q", got)
		}
	})
}
