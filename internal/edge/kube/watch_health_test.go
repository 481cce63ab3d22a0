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

// A watch that is rejected or does not reach the API server is reported until one succeeds. Other requests are ignored, and so is a watch
// that only has to start again.
func TestAWatchThatFailsIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var noted []string
		health := &kube.WatchHealth{Noted: func(resource, namespace, failure string) {
			noted = append(noted, strings.TrimSpace(resource+" "+namespace)+": "+failure)
		}}
		answer, failure := http.StatusOK, error(nil)
		through := health.Follow(roundTripper(func(*http.Request) (*http.Response, error) {
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
			err := health.Failure(5 * time.Second)
			if trouble == "" && err != nil || trouble != "" && (err == nil || !strings.Contains(err.Error(), trouble)) {
				t.Errorf("%s: the error is %v, want %q", when, err, trouble)
			}
		}
		const pods, widgets = "/api/v1/namespaces/a/pods", "/apis/example.com/v1/widgets"
		ask(pods + "?watch=true")
		answer = http.StatusForbidden
		ask(widgets)                    // A list that replaces no watch.
		ask(widgets + "/one?watch=yes") // Not a collection.
		ask(pods + "?resourceVersion=0")
		ask(pods + "?watch=1")
		expect("at once", "")
		<-time.After(6 * time.Second)
		expect("later", "watch of pods in a has been failing for 6s: Forbidden")
		answer = http.StatusGone
		ask(pods + "?watch=true")
		expect("when it has to start again", "")
		failure = errors.New("no connection")
		ask(widgets + "?watch=true")
		<-time.After(6 * time.Second)
		expect("without an answer", "widgets.example.com has been failing for 6s: no connection")
		health.Forget("widgets.example.com")
		expect("when the watch is canceled", "")
		want := []string{"pods a: ", "pods a: Forbidden", "pods a: Forbidden", "pods a: ", "widgets.example.com: no connection"}
		if diff := cmp.Diff(want, noted); diff != "" {
			t.Error(diff)
		}
	})
}

// Scenario 85 (docs/concepts/scenarios.md): a watch that is forbidden in a namespace does no harm while it is allowed in another.
func TestAWatchThatIsRefusedInANamespaceIsSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		health := &kube.WatchHealth{Spare: "namespaces"}
		answer := func(path string, with int) { answerWatch(t, health, path, with) }
		trouble := func(when string, want bool) {
			t.Helper()
			<-time.After(10 * time.Second)
			if err := health.Failure(5 * time.Second); (err != nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		const a, b = "/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"
		answer(a, http.StatusForbidden)
		trouble("where every watch is forbidden", true)
		answer(b, http.StatusOK)
		trouble("where one watch is allowed", false)
		answer(b, http.StatusServiceUnavailable)
		trouble("where the allowed one fails", true)
		answer(b, http.StatusOK)
		answer("/api/v1/namespaces", http.StatusForbidden)
		trouble("without the list of namespaces", false)
		answer("/api/v1/nodes", http.StatusForbidden)
		trouble("without a watch that is needed", true)

		if health.Steady("pods", "a", time.Minute) || health.Steady("pods", "b", time.Minute) || health.Steady("pods", "c", time.Minute) {
			t.Error("a watch that fails, has just failed or is not known counts as steady")
		}
		<-time.After(2 * time.Minute)
		if !health.Steady("pods", "b", time.Minute) {
			t.Error("a watch that has not failed for two minutes is not steady")
		}
		if diff := cmp.Diff([]string{"pods"}, health.ForgetNamespace("b")); diff != "" || health.Steady("pods", "b", time.Minute) {
			t.Errorf("the forgotten watches differ: %s", diff)
		}
	})
}

// answerWatch answers a watch request with a status code.
func answerWatch(t *testing.T, health *kube.WatchHealth, path string, with int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path+"?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := health.Follow(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: with, Status: http.StatusText(with), Body: http.NoBody}, nil
	})).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}
