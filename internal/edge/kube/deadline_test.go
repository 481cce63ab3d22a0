package kube_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

const (
	widgetPath   = "/apis/example.com/v1/namespaces/default/widgets/one"
	widgetsWatch = "/apis/example.com/v1/widgets?watch=true&allowWatchBookmarks=true"
	// proxyPrefix is the path of a server that proxies API servers, as Rancher does.
	proxyPrefix = "/k8s/clusters/api"
)

// silent does not answer a request before its context ends.
func silent(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

// answering sends the headers of a response at once, and then one byte of its body at a time.
func answering(every time.Duration, bytes int) roundTripper {
	return func(request *http.Request) (*http.Response, error) {
		body := &slowBody{ctx: request.Context(), every: every, left: bytes}
		return &http.Response{StatusCode: http.StatusOK, Body: body, Request: request}, nil
	}
}

// slowBody delivers a byte after each pause, and then nothing until the context of the request ends.
type slowBody struct {
	ctx   context.Context //nolint:containedctx // The context of the request.
	every time.Duration
	left  int
}

// Read waits for the next byte.
func (b *slowBody) Read(into []byte) (int, error) {
	if b.left == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	select {
	case <-time.After(b.every):
		b.left--
		into[0] = '.'
		return 1, nil
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

// Close does nothing.
func (b *slowBody) Close() error { return nil }

// send sends a request through a transport with deadlines of one minute, and three for watches. It returns what it read of the response.
func send(ctx context.Context, t *testing.T, next http.RoundTripper, method, path string) (string, error) {
	t.Helper()
	client := kube.Deadlines{Request: time.Minute, Silence: 3 * time.Minute}.Client(&http.Client{Transport: next})
	request, err := http.NewRequestWithContext(ctx, method, "http://server"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	read, err := io.ReadAll(answer.Body)
	return string(read), err
}

func TestARequestThatIsNotAnsweredFailsAtItsDeadline(t *testing.T) {
	for request, want := range map[string]string{
		"PATCH " + widgetPath:                        "patch widgets.example.com default/one: the API server did not answer within 1m0s; the request may have been carried out",
		"PATCH " + widgetPath + "/status":            "patch widgets.example.com/status default/one: the API server did not answer within 1m0s; the request may have been carried out",
		"GET " + widgetPath:                          "get widgets.example.com default/one: the API server did not answer within 1m0s",
		"GET /api/v1/namespaces/blue":                "get namespaces blue: the API server did not answer within 1m0s",
		"PUT /api/v1/namespaces/blue/finalize":       "update namespaces/finalize blue: the API server did not answer within 1m0s; the request may have been carried out",
		"GET /api/v1/secrets?limit=500":              "list secrets: the API server did not answer within 1m0s",
		"POST /api/v1/namespaces/blue/configmaps":    "create configmaps in namespace blue: the API server did not answer within 1m0s; the request may have been carried out",
		"GET /api/v1/pods?watch=false":               "list pods: the API server did not answer within 1m0s",
		"GET " + widgetsWatch:                        "watch widgets.example.com: the API server did not answer within 3m0s",
		"GET /openapi/v3":                            "get /openapi/v3: the API server did not answer within 1m0s",
		"GET /apis/example.com/v1":                   "get /apis/example.com/v1: the API server did not answer within 1m0s",
		"DELETE /api/v1/namespaces/blue/pods/gone":   "delete pods blue/gone: the API server did not answer within 1m0s; the request may have been carried out",
		"GET /api/v1/namespaces/blue/pods/a?watch=1": "get pods blue/a: the API server did not answer within 1m0s",
		"GET " + proxyPrefix + "/api/v1/pods":        "list pods: the API server did not answer within 1m0s",
		"GET " + proxyPrefix + widgetPath:            "get widgets.example.com default/one: the API server did not answer within 1m0s",
		"GET " + proxyPrefix + "/version":            "get /k8s/clusters/api/version: the API server did not answer within 1m0s",
	} {
		t.Run(request, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				method, path, _ := strings.Cut(request, " ")
				asked := time.Now()
				_, err := send(t.Context(), t, roundTripper(silent), method, path)
				limit := time.Minute
				if strings.Contains(path, "allowWatchBookmarks") {
					limit = 3 * time.Minute
				}
				if took := time.Since(asked); took != limit {
					t.Errorf("it failed after %s", took)
				}
				if err == nil || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("the error is %v, want %s", err, want)
				}
				unanswered(t, err)
			})
		})
	}
}

// unanswered checks that callers see the error as one of an unavailable server, and as no other.
func unanswered(t *testing.T, err error) {
	t.Helper()
	if !apierrors.IsServiceUnavailable(err) || apierrors.IsNotFound(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v has the reason %q", err, apierrors.ReasonForError(err))
	}
}

func TestAnAnswerThatDoesNotEndFailsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := time.Now()
		_, err := send(t.Context(), t, answering(time.Second, 1<<20), http.MethodGet, "/api/v1/pods")
		if took := time.Since(asked); took != time.Minute {
			t.Errorf("it failed after %s", took)
		}
		if err == nil || err.Error() != "list pods: the API server did not send its complete response within 1m0s" {
			t.Errorf("the error is %v", err)
		}
		unanswered(t, err)
	})
}

func TestAnAnswerInTimeIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released <-chan struct{}
		next := roundTripper(func(request *http.Request) (*http.Response, error) {
			released = request.Context().Done()
			<-time.After(59 * time.Second)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("all of it"))}, nil
		})
		if read, err := send(t.Context(), t, next, http.MethodGet, widgetPath); read != "all of it" || err != nil {
			t.Errorf("read %q, %v", read, err)
		}
		select {
		case <-released:
		default:
			t.Error("the context of the request is not released")
		}
	})
}

func TestTheCallersOwnDeadlineStaysItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := send(ctx, t, roundTripper(silent), http.MethodGet, widgetPath)
		if !errors.Is(err, context.DeadlineExceeded) || apierrors.IsServiceUnavailable(err) {
			t.Errorf("the error is %v", err)
		}
	})
}

// client-go opens an ended watch again from the last resource version. After an error it would list all objects.
func TestASilentWatchEnds(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		want time.Duration
	}{
		"with bookmarks":    {widgetsWatch, 10*2*time.Minute + 3*time.Minute},
		"with initial ones": {widgetsWatch + "&sendInitialEvents=true", 10*2*time.Minute + 3*time.Minute},
		"behind a prefix":   {proxyPrefix + widgetsWatch, 10*2*time.Minute + 3*time.Minute},
		"without bookmarks": {"/api/v1/pods?watch=1", 10*2*time.Minute + 65*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := time.Now()
				read, err := send(t.Context(), t, answering(2*time.Minute, 10), http.MethodGet, c.path)
				if len(read) != 10 || err != nil {
					t.Errorf("read %q, %v", read, err)
				}
				if took := time.Since(asked); took != c.want {
					t.Errorf("it ended after %s, want %s", took, c.want)
				}
			})
		})
	}
}

// A reader that stops a watch closes its body while another goroutine reads.
func TestAClosedWatchLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := kube.Deadlines{Request: time.Minute, Silence: 3 * time.Minute}.Wrap(answering(time.Second, 1<<20))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+widgetsWatch, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(request) //nolint:bodyclose // It is closed below.
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, answer.Body)
			ended <- err
		}()
		<-time.After(10*time.Second + 500*time.Millisecond)
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the reader gets %v", err)
		}
	})
}

func TestLongRunningRequestsAreLeftAlone(t *testing.T) {
	for _, path := range []string{
		"/api/v1/namespaces/blue/pods/one/log?follow=true", "/api/v1/namespaces/blue/pods/one/exec", "/api/v1/namespaces/blue/pods/one/attach",
		"/api/v1/namespaces/blue/pods/one/portforward", "/api/v1/namespaces/blue/services/one/proxy/path", "/api/v1/nodes/one/proxy",
		"/api/v1/watch/pods", proxyPrefix + "/api/v1/namespaces/blue/pods/one/log",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := time.Now()
				body := io.NopCloser(strings.NewReader(""))
				transport := kube.Deadlines{Request: time.Minute, Silence: 3 * time.Minute}.Wrap(answeringAfter(10*time.Hour, body))
				at, err := url.Parse("http://server" + path)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := transport.RoundTrip((&http.Request{Method: http.MethodGet, URL: at}).WithContext(t.Context()))
				if err != nil || time.Since(asked) != 10*time.Hour {
					t.Fatalf("after %s: %v", time.Since(asked), err)
				}
				defer func() { _ = answer.Body.Close() }()
				if answer.Body != body {
					t.Error("the body was wrapped")
				}
			})
		})
	}
}

// answeringAfter answers after a while, unless the context of the request ends earlier.
func answeringAfter(wait time.Duration, body io.ReadCloser) roundTripper {
	return func(request *http.Request) (*http.Response, error) {
		select {
		case <-time.After(wait):
			return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: body}, nil
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
}

func TestATransportGetsDeadlinesOnce(t *testing.T) {
	first := kube.Deadlines{Request: time.Minute, Silence: time.Minute}.Wrap(http.DefaultTransport)
	followed := (&kube.WatchHealth{}).Follow(first)
	if second := (kube.Deadlines{Request: time.Hour, Silence: time.Hour}).Wrap(followed); second != followed {
		t.Errorf("it was wrapped in %T", second)
	}
}
