package virtual_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// hangs returns an interceptor that makes the first chosen request hang until its client gives up, and a counter of chosen requests.
func hangs(chosen func(*http.Request) bool, carriedOut bool) (intercept func(http.ResponseWriter, *http.Request, http.Handler), asked *atomic.Int32) { //nolint:revive // Two sorts of one fault.
	asked = &atomic.Int32{}
	return func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if !chosen(r) || asked.Add(1) > 1 {
			next.ServeHTTP(answer, r)
			return
		}
		if carriedOut {
			next.ServeHTTP(httptest.NewRecorder(), r)
		}
		<-r.Context().Done()
	}, asked
}

// A write that is not answered may have been carried out. In both cases the handler runs once.
func TestAWriteThatIsNotAnsweredIsALostAnswer(t *testing.T) {
	t.Run("carried out", func(t *testing.T) { unansweredWrite(t, true) })
	t.Run("not carried out", func(t *testing.T) { unansweredWrite(t, false) })
}

func unansweredWrite(t *testing.T, carriedOut bool) {
	j := &fixture.Journal{}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { fixture.StatusCarrier().Declare(op, fixture.Plan{Journal: j}) }, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Minute)
		intercept, asked := hangs(func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/widgets/")
		}, carriedOut)
		w.Server.Intercept(intercept)
		if err := w.User.Create(t.Context(), widgetNamed("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		if n := asked.Load(); n != 1 {
			t.Errorf("%d writes within the deadline", n)
		}
		w.Pass(time.Minute)
		if got := j.Of("one"); !slices.Equal(got, []string{"make (create, attempt 1)"}) {
			t.Errorf("calls: %q", got)
		}
		found := &fixture.Widget{}
		if err := w.User.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "one"}, found); err != nil || found.Status.Phase != "made" {
			t.Errorf("the widget is %q, %v", found.Status.Phase, err)
		}
		found.Spec.Size = 2
		if err := w.User.Update(t.Context(), found); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		if got := j.Of("one"); !slices.Equal(got, []string{"make (create, attempt 1)", "resize (update, attempt 1)"}) {
			t.Errorf("calls after an edit: %q", got)
		}
	})
}

// The API server never answers the first list of the kind. The operator lists again and handles the object.
func TestAFirstListThatIsNotAnsweredIsRetried(t *testing.T) {
	j := &fixture.Journal{}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { fixture.StatusCarrier().Declare(op, fixture.Plan{Journal: j}) }, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Minute)
		w.Stop()
		if err := w.User.Create(t.Context(), widgetNamed("early")); err != nil {
			t.Fatal(err)
		}
		intercept, asked := hangs(func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/widgets")
		}, false)
		w.Server.Intercept(intercept)
		w.start()
		w.Pass(4 * time.Minute)
		if got := j.Of("early"); !slices.Equal(got, []string{"make (create, attempt 1)"}) || asked.Load() < 2 {
			t.Errorf("after %d requests the calls are %q", asked.Load(), got)
		}
	})
}
