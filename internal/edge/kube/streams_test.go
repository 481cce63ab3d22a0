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
		streams := &kube.Streams{Noted: func(resource, namespace, complaint string) {
			noted = append(noted, strings.TrimSpace(resource+" "+namespace)+": "+complaint)
		}}
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
		want := []string{"pods a: ", "pods a: Forbidden", "pods a: Forbidden", "pods a: ", "widgets.example.com: no connection"}
		if diff := cmp.Diff(want, noted); diff != "" {
			t.Error(diff)
		}
	})
}

// Scenario 85: what may not be watched in a namespace is in nobody's way, as long as it may be in another.
func TestAWatchThatIsRefusedInANamespaceIsSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := &kube.Streams{Spare: "namespaces"}
		answer := func(path string, with int) { answerWatch(t, streams, path, with) }
		trouble := func(when string, want bool) {
			t.Helper()
			<-time.After(10 * time.Second)
			if err := streams.Trouble(5 * time.Second); (err != nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		const a, b = "/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"
		answer(a, http.StatusForbidden)
		trouble("where nothing may be watched", true)
		answer(b, http.StatusOK)
		trouble("where one namespace may be watched", false)
		answer(b, http.StatusServiceUnavailable)
		trouble("where the other one fails", true)
		answer(b, http.StatusOK)
		answer("/api/v1/namespaces", http.StatusForbidden)
		trouble("without the list of namespaces", false)
		answer("/api/v1/nodes", http.StatusForbidden)
		trouble("without what is needed", true)

		if streams.Steady("pods", "a", time.Minute) || streams.Steady("pods", "b", time.Minute) || streams.Steady("pods", "c", time.Minute) {
			t.Error("a watch that fails, has just failed or is not known counts as steady")
		}
		<-time.After(2 * time.Minute)
		if !streams.Steady("pods", "b", time.Minute) {
			t.Error("a watch that has not failed for two minutes is not steady")
		}
		if diff := cmp.Diff([]string{"pods"}, streams.ForgetNamespace("b")); diff != "" || streams.Steady("pods", "b", time.Minute) {
			t.Errorf("the watch is not forgotten: %s", diff)
		}
	})
}

// answerWatch answers a request to watch with a code.
func answerWatch(t *testing.T, streams *kube.Streams, path string, with int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path+"?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := streams.Follow(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: with, Status: http.StatusText(with), Body: http.NoBody}, nil
	})).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}
