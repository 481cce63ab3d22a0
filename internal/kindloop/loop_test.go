package kindloop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
)

// story is what happens to a kind, with the seconds since the beginning.
type story struct {
	t     *testing.T
	begun time.Time

	// mu guards the fields below.
	mu     sync.Mutex
	lines  []string
	absent error
}

// serve makes the API server serve the kind, or not because of an error.
func (s *story) serve(absent error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absent = absent
}

func (s *story) served() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.absent
}

func (s *story) tell(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, time.Since(s.begun).Round(100*time.Millisecond).String()+" "+line)
}

func (s *story) expect(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.lines); diff != "" {
		s.t.Errorf("the story (-want +got):\n%s", diff)
	}
}

// loop returns a loop that tells its story. The API server serves the kind unless there is an error in absent.
func (s *story) loop(informers *kindloop.Informers) kindloop.Loop {
	s.begun = time.Now()
	return kindloop.Loop{
		Informers: informers,
		Find: func(context.Context) (kube.Description, error) {
			return kube.Description{Resource: "widgets"}, s.served()
		},
		Waiting: func(err error, news bool) {
			if news {
				s.tell("waits: " + err.Error())
			}
		},
		Serve: func(ctx context.Context, found kube.Description) error {
			s.tell("serves " + found.Resource)
			<-ctx.Done()
			s.tell("ends")
			return context.Cause(ctx)
		},
		Vanished: func(_ context.Context, found kube.Description) error {
			s.tell(found.Resource + " vanished")
			return nil
		},
		Served: func(context.Context) error { return s.served() },
	}
}

// A kind is served when it appears, ended when it vanishes, and served again when it is back. Errors are news once.
func TestAKindIsServedAsLongAsTheAPIServerDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var informers kindloop.Informers
		s := &story{t: t, absent: kube.ErrNotServed}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		l := s.loop(&informers)
		go func() { ended <- l.Run(ctx) }()
		<-time.After(2500 * time.Millisecond)
		s.serve(nil)
		<-time.After(time.Second)
		informers.WatchFailed(t.Context(), nil, nil, true) // The kind is still served.
		synctest.Wait()
		s.serve(kube.ErrNotServed)
		<-time.After(time.Minute) // Nothing tells that it has vanished.
		informers.WatchFailed(t.Context(), nil, nil, true)
		<-time.After(1500 * time.Millisecond)
		s.serve(nil)
		<-time.After(time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		waits := "waits: " + kube.ErrNotServed.Error()
		s.expect("0s "+waits, "3s serves widgets", "1m3.5s ends", "1m3.5s widgets vanished", "1m3.5s "+waits, "1m5.5s serves widgets", "1m6s ends")
	})
}

// A schema that is about to be published is looked for often, for some seconds.
func TestASchemaThatIsAboutToBePublishedIsLookedForOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &story{t: t, absent: kube.ErrNoSchema}
		l := s.loop(nil)
		times := 0
		find := l.Find
		l.Find = func(ctx context.Context) (kube.Description, error) {
			times++
			return find(ctx)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
		if times < 50 || times > 60 {
			t.Errorf("it was looked for %d times in ten seconds", times)
		}
		if len(s.lines) != 1 || !strings.HasPrefix(s.lines[0], "5s waits") {
			t.Errorf("the story is %q", s.lines)
		}
	})
}

// An error ends the loop. The end of Serve without one counts as vanished: the informer was removed, for example.
func TestAnErrorEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, failed := &story{t: t}, errors.New("failed")
		l := s.loop(nil)
		results := []error{nil, context.Canceled, failed}
		l.Served = nil
		l.Serve = func(context.Context, kube.Description) (err error) {
			s.tell("serves")
			err, results = results[0], results[1:]
			return err
		}
		if err := l.Run(t.Context()); !errors.Is(err, failed) {
			t.Error(err)
		}
		s.expect("0s serves", "0s widgets vanished", "0s serves", "0s widgets vanished", "0s serves")
		results = []error{nil}
		l.Vanished = func(context.Context, kube.Description) error { return failed }
		if err := l.Run(t.Context()); !errors.Is(err, failed) || !slices.Contains(s.lines, "0s serves") {
			t.Error(err)
		}
	})
}
