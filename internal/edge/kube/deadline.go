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
	// DefaultRequestTimeout is slightly above the 60 seconds after which an API server itself ends a request (--request-timeout). The
	// server's response says more than an exceeded deadline of the client.
	DefaultRequestTimeout = 70 * time.Second
	// DefaultWatchSilence is three times the interval at which an API server sends bookmarks.
	DefaultWatchSilence = 3 * time.Minute
	// unmarkedSilence is for watches without bookmarks. An API server ends every watch within an hour (--min-request-timeout).
	unmarkedSilence = 65 * time.Minute
)

// Deadlines limits how long a request to the API server can hang, on a dead connection or behind a load balancer that accepts requests
// and does not respond. Long-running requests such as exec, port-forward and log have no deadline. rest.Config.Timeout is not an
// alternative, because it also ends working watches.
type Deadlines struct {
	// Request is how long the API server may take for a complete response.
	Request time.Duration
	// Silence is how long a watch that requests bookmarks may deliver nothing. Then it ends, as if the API server had ended it, and its
	// reader opens it again from the last resource version.
	Silence time.Duration
}

// Apply adds deadlines to all requests of clients that are created with the configuration.
func (d Deadlines) Apply(config *rest.Config) { config.Wrap(d.Wrap) }

// Client returns a copy of a client whose requests have deadlines.
func (d Deadlines) Client(given *http.Client) *http.Client {
	copied := *given
	next := copied.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	copied.Transport = d.Wrap(next)
	return &copied
}

// Wrap returns a transport that adds deadlines to all requests. It returns a transport that already has them unchanged. The transport
// must return when the context of a request ends.
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

// errDeadline is the cause of a context that ends because the API server did not respond.
var errDeadline = errors.New("request deadline exceeded")

type deadlineTransport struct {
	limits Deadlines
	next   http.RoundTripper
	// suspect means that a connection did not respond. HTTP/2 would reuse it forever if an intermediary answers the pings.
	suspect atomic.Bool
}

// RoundTrip sends a request.
func (t *deadlineTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := TargetOf(request)
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
		request.Close = true // Do not reuse the connection for further requests.
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

// leaveConnections keeps further requests off connections that may be dead. Otherwise each connection in an HTTP/1.1 pool would cost
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

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (t *deadlineTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// deadlineBody is the body of a response. It is read after RoundTrip has returned.
type deadlineBody struct {
	from    io.ReadCloser
	ctx     context.Context //nolint:containedctx // This is the context of the request that the body belongs to.
	cancel  context.CancelCauseFunc
	failure *UnansweredError
	// unanswered is called when the deadline has ended the request.
	unanswered func()
	watch      bool
	// silence is how long nothing may arrive, or 0 if the deadline is for the complete response.
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

// alive restarts the timer after data has arrived.
func (b *deadlineBody) alive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.silence > 0 && !b.ended {
		b.timer.Reset(b.silence)
	}
}

// end releases the timer and the context. It returns the error, or the cause if that is the deadline.
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
		return io.EOF // client-go continues from the last resource version. After an error it would list all objects again.
	}
	return b.failure
}

// UnansweredError is the error of a request that the API server did not answer in time. The request may have been carried out.
// apierrors.IsServiceUnavailable returns true for it.
type UnansweredError struct {
	// Request describes the request and its object.
	Request string
	Timeout time.Duration
	// write means that the request would have changed something. partial means that the response had started.
	write, partial bool
}

// Error describes the request and how long there was no response.
func (e *UnansweredError) Error() string {
	text := fmt.Sprintf("%s: the API server did not answer within %s", e.Request, e.Timeout)
	if e.partial {
		text = fmt.Sprintf("%s: the API server did not send its complete response within %s", e.Request, e.Timeout)
	}
	if e.write {
		text += "; the request may have been carried out"
	}
	return text
}

// Status returns the error in the form in which an API server would return it.
func (e *UnansweredError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: e.Error(),
	}
}
