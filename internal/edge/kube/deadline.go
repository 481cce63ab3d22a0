package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	// DefaultRequestTimeout is just above the 60 seconds after which an API server ends a request itself (--request-timeout). Its own
	// answer says more than a deadline of the client.
	DefaultRequestTimeout = 70 * time.Second
	// DefaultWatchSilence is three times the interval at which an API server sends bookmarks.
	DefaultWatchSilence = 3 * time.Minute
	// unmarkedSilence is for watches without bookmarks. An API server ends every watch within an hour (--min-request-timeout).
	unmarkedSilence = 65 * time.Minute
)

// Deadlines bounds how long a request to the API server can hang: on a connection that is dead, or behind a load balancer that
// accepts requests and does not answer. Requests that run for long by design, such as exec, port-forward and log, have no deadline.
// rest.Config.Timeout is no alternative, because it also ends watches that work.
type Deadlines struct {
	// Request is how long the API server may take for a whole answer.
	Request time.Duration
	// Silence is how long a watch may deliver nothing, although it asks for bookmarks. Then it ends, as if the API server had ended
	// it, and its reader opens it again from the last resource version.
	Silence time.Duration
}

// Apply gives all requests of clients that are made with the configuration a deadline.
func (d Deadlines) Apply(config *rest.Config) { config.Wrap(d.Wrap) }

// Client returns a copy of a client whose requests have a deadline.
func (d Deadlines) Client(given *http.Client) *http.Client {
	copied := *given
	next := copied.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	copied.Transport = d.Wrap(next)
	return &copied
}

// Wrap gives all requests that are sent through the result a deadline. It returns a transport unchanged that Wrap has made already.
// The transport must return when the context of a request ends.
func (d Deadlines) Wrap(next http.RoundTripper) http.RoundTripper {
	if hasDeadlines(next) {
		return next
	}
	return &deadlineTransport{limits: d, next: next}
}

func hasDeadlines(transport http.RoundTripper) bool {
	for {
		if _, is := transport.(*deadlineTransport); is {
			return true
		}
		wrapper, is := transport.(utilnet.RoundTripperWrapper)
		if !is {
			return false
		}
		transport = wrapper.WrappedRoundTripper()
	}
}

// errDeadline is the cause of a context that ends because the API server did not answer.
var errDeadline = errors.New("deadline of the request")

type deadlineTransport struct {
	limits Deadlines
	next   http.RoundTripper
	// suspect: a connection did not answer. HTTP/2 would use it for ever, if an intermediary on the way answers the pings.
	suspect atomic.Bool
}

// RoundTrip sends a request.
func (t *deadlineTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := targetOf(request)
	if asked.longRunning {
		return t.next.RoundTrip(request)
	}
	limit := t.limits.Request
	if asked.watch {
		limit = t.limits.Silence // Some proxies send the headers of a watch together with its first event.
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(limit, func() { cancel(errDeadline) })
	request = request.WithContext(ctx)
	if t.suspect.CompareAndSwap(true, false) {
		request.Close = true // The connection is not used for further requests.
	}
	answer, err := t.next.RoundTrip(request)
	body := &deadlineBody{ctx: ctx, timer: timer, cancel: cancel, unanswered: t.leaveConnections, failure: &UnansweredError{
		Request: asked.String(), Timeout: limit, write: asked.write,
	}}
	if err != nil {
		return nil, body.end(err)
	}
	if answer.Body == nil {
		_ = body.end(nil)
		return answer, nil
	}
	body.from, body.watch, body.failure.partial = answer.Body, asked.watch, true
	if asked.watch {
		if !asked.bookmarks {
			limit = max(limit, unmarkedSilence)
		}
		body.silence = limit
		body.alive()
	}
	answer.Body = body
	return answer, nil
}

// leaveConnections keeps further requests off connections that may be dead. Without it, each connection in the pool of HTTP/1.1 would cost
// another deadline.
func (t *deadlineTransport) leaveConnections() {
	t.suspect.Store(true)
	next := t.next
	for next != nil {
		if pool, is := next.(interface{ CloseIdleConnections() }); is {
			pool.CloseIdleConnections()
			return
		}
		wrapper, is := next.(utilnet.RoundTripperWrapper)
		if !is {
			return
		}
		next = wrapper.WrappedRoundTripper()
	}
}

// WrappedRoundTripper lets client-go find what is within.
func (t *deadlineTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// deadlineBody is the body of an answer, which is read after RoundTrip has returned.
type deadlineBody struct {
	from    io.ReadCloser
	ctx     context.Context //nolint:containedctx // It is the context of the request that the body belongs to.
	cancel  context.CancelCauseFunc
	failure *UnansweredError
	// unanswered is called when the deadline has ended the request.
	unanswered func()
	watch      bool
	// silence is how long nothing may arrive; 0 if the deadline is that of the whole answer.
	silence time.Duration

	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

// Read reads from the body.
func (b *deadlineBody) Read(into []byte) (int, error) {
	n, err := b.from.Read(into)
	if err != nil {
		return n, b.end(err)
	}
	if n > 0 {
		b.alive()
	}
	return n, nil
}

// Close ends the request.
func (b *deadlineBody) Close() error {
	_ = b.end(nil)
	return b.from.Close()
}

// alive notes that something has arrived.
func (b *deadlineBody) alive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.silence > 0 && !b.ended {
		b.timer.Reset(b.silence)
	}
}

// end releases the timer and the context. It returns the error, or what has caused it if that was the deadline.
func (b *deadlineBody) end(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.timer.Stop()
	passed := errors.Is(context.Cause(b.ctx), errDeadline)
	b.cancel(nil)
	if !passed || err == nil || errors.Is(err, io.EOF) {
		return err
	}
	b.unanswered()
	if b.watch {
		return io.EOF // client-go goes on from the last resource version. After an error it would list all objects again.
	}
	return b.failure
}

// UnansweredError is the error of a request that the API server did not answer in time. It may have been carried out.
// apierrors.IsServiceUnavailable reports true for it.
type UnansweredError struct {
	// Request is what was asked of which object.
	Request string
	Timeout time.Duration
	// write: it would have changed something. partial: the answer has begun.
	write, partial bool
}

// Error says what was asked, and for how long there was no answer.
func (e *UnansweredError) Error() string {
	text := fmt.Sprintf("%s: the API server did not answer within %s", e.Request, e.Timeout)
	if e.partial {
		text = fmt.Sprintf("%s: the API server did not send its whole answer within %s", e.Request, e.Timeout)
	}
	if e.write {
		text += "; the request may have been carried out"
	}
	return text
}

// Status is the error as an API server would return it.
func (e *UnansweredError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: e.Error(),
	}
}
