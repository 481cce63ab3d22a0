package kube_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// Design §9: streams do not fail in silence. A watch that is refused, or does not arrive, is told of until one is answered;
// other requests are not looked at, and nor is a watch that has to begin anew.
func TestAWatchThatFailsIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var noted []string
		streams := &kube.Streams{Noted: func(resource, complaint string) { noted = append(noted, resource+": "+complaint) }}
		answer, failure := http.StatusOK, error(nil)
		through := streams.Follow(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: answer, Status: http.StatusText(answer), Body: http.NoBody}, failure
		}))
		ask := func(path string) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if response, err := through.RoundTrip(request); err == nil {
				_ = response.Body.Close()
			}
		}
		expect := func(when, trouble string) {
			t.Helper()
			err := streams.Trouble(5 * time.Second)
			if trouble == "" && err != nil || trouble != "" && (err == nil || !strings.Contains(err.Error(), trouble)) {
				t.Errorf("%s: the trouble is %v, want %q", when, err, trouble)
			}
		}
		const pods, widgets = "/api/v1/namespaces/a/pods", "/apis/example.com/v1/widgets"
		ask(pods + "?watch=true")
		answer = http.StatusForbidden
		ask(widgets)                    // Somebody's list.
		ask(widgets + "/one?watch=yes") // No collection.
		ask(pods + "?resourceVersion=0")
		ask(pods + "?watch=1")
		expect("at once", "")
		<-time.After(6 * time.Second)
		expect("later", "the watch of pods in a has failed for 6s: Forbidden")
		answer = http.StatusGone
		ask(pods + "?watch=true")
		expect("when it has to begin anew", "")
		failure = errors.New("no connection")
		ask(widgets + "?watch=true")
		<-time.After(6 * time.Second)
		expect("without an answer", "widgets.example.com has failed for 6s: no connection")
		streams.Forget("widgets.example.com")
		expect("when nobody watches", "")
		want := []string{"pods: ", "pods: Forbidden", "pods: Forbidden", "pods: ", "widgets.example.com: no connection"}
		if diff := cmp.Diff(want, noted); diff != "" {
			t.Error(diff)
		}
	})
}
