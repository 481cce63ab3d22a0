package engine

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/schemaview"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// Scenario 83: schemas are asked for soon after watches have begun, also where some watch begins all the time, as it does where
// there are many; and at rest once a minute.
func TestSchemasAreAskedForSoonAfterWatchesBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := apiserver.New()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		var asked atomic.Int32
		config := server.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if strings.HasPrefix(r.URL.Path, "/openapi/v3") {
					asked.Add(1)
				}
				return next.RoundTrip(r)
			})
		})
		k := &kindController{kind: declaration.Kind{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Absent"}}}
		k.views.Set(schemaview.View{Description: kube.Description{Schema: "of before"}})
		health := kube.NewWatchHealth(nil)
		o := &Operator{WatchHealth: health, Discovery: discovery.NewDiscoveryClientForConfigOrDie(config)}
		defer o.schemas.keep(k)()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			o.schemas.follow(ctx, o)
		}()
		begins := func(times int) {
			for range times {
				beginWatch(t, health)
				<-time.After(time.Second)
			}
		}
		expect := func(when string, least, most int32) {
			t.Helper()
			if got := asked.Swap(0); got < least || got > most {
				t.Errorf("%s it is asked %d times, want %d to %d", when, got, least, most)
			}
		}
		begins(60)
		expect("while watches begin each second", 25, 31)
		<-time.After(10 * time.Second)
		expect("after the last one", 2, 4)
		<-time.After(10 * time.Minute)
		expect("at rest, in ten minutes", 9, 11)
		cancel()
		<-ended
	})
}

// beginWatch begins a watch that ends at once.
func beginWatch(t *testing.T, health *kube.WatchHealth) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api/v1/pods?watch=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := health.Follow(roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip answers a request.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
