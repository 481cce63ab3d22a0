package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// ErrConnection is what a client gets of a connection that broke.
var ErrConnection = errors.New("connection reset by peer")

// transport hands requests to the server without a socket.
type transport struct{ server *Server }

// RoundTrip answers a request in the caller's goroutine; only a watch has a goroutine of its own.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case t.server.ctx.Err() != nil:
		return nil, fmt.Errorf("%s %s: the server is closed: %w", r.Method, r.URL.Path, ErrConnection)
	case isWatch(r):
		return t.watch(r)
	}
	answer := &recorder{header: http.Header{}}
	if err := t.handle(answer, r); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return response(r, answer.status(), answer.header, io.NopCloser(&answer.body)), nil
}

func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && watch != "" && watch != "0" && watch != "false"
}

// handle runs the handler, and makes an aborted one a broken connection.
func (t *transport) handle(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch problem := recover(); problem {
		case nil:
		case http.ErrAbortHandler:
			err = fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, ErrConnection)
		default:
			panic(problem)
		}
	}()
	received := r.Clone(r.Context())
	if received.Body == nil {
		received.Body = http.NoBody
	}
	received.RequestURI, received.Host = r.URL.RequestURI(), r.URL.Host
	t.server.ServeHTTP(w, received)
	return nil
}

func response(r *http.Request, code int, header http.Header, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: -1, Request: r,
	}
}

// recorder keeps a whole answer.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

func (r *recorder) Write(part []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(part)
}

func (r *recorder) status() int { return max(r.code, http.StatusOK) }

// watch starts a stream and returns when its header is there.
func (t *transport) watch(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stopWithServer := context.AfterFunc(t.server.ctx, cancel) //nolint:contextcheck // The server's end is another matter than the request's.
	read, write := io.Pipe()
	p := &pipe{read: read, write: write, cancel: cancel, header: http.Header{}, started: make(chan struct{})}
	t.server.track(p)
	stopBreaking := context.AfterFunc(ctx, func() {
		if err := r.Context().Err(); err != nil {
			p.breakWith(err)
			return
		}
		p.breakWith(ErrConnection)
	})
	t.server.running.Go(func() {
		defer stopWithServer()
		defer cancel()
		defer t.server.forget(p)
		err := t.handle(p, r.WithContext(ctx))
		stopBreaking()
		p.start(http.StatusOK)
		_ = write.CloseWithError(err) // nil is a clean end.
	})
	select {
	case <-p.started:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if p.broken() {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, ErrConnection)
	}
	return response(r, p.code, p.header, p), nil
}

func (s *Server) track(p *pipe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pipes[p] = struct{}{}
}

func (s *Server) forget(p *pipe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pipes, p)
}

// pipe is the connection of one watch: what the handler writes, the client reads.
type pipe struct {
	read    *io.PipeReader
	write   *io.PipeWriter
	cancel  context.CancelFunc
	header  http.Header
	once    sync.Once
	code    int
	started chan struct{}

	mu      sync.Mutex
	severed bool
}

func (p *pipe) Header() http.Header { return p.header }

func (p *pipe) WriteHeader(code int) { p.start(code) }

func (p *pipe) start(code int) {
	p.once.Do(func() {
		p.header = p.header.Clone()
		p.code = code
		close(p.started)
	})
}

func (p *pipe) Write(part []byte) (int, error) {
	p.start(http.StatusOK)
	return p.write.Write(part)
}

// Flush is there because servers flush their streams; a pipe keeps nothing back.
func (p *pipe) Flush() { p.start(http.StatusOK) }

func (p *pipe) Read(into []byte) (int, error) { return p.read.Read(into) }

// Close is the client's end of the watch.
func (p *pipe) Close() error {
	p.cancel()
	return p.read.Close()
}

// breakWith ends what is being written and read.
func (p *pipe) breakWith(err error) { _ = p.write.CloseWithError(err) }

func (p *pipe) sever() {
	p.mu.Lock()
	p.severed = true
	p.mu.Unlock()
	p.breakWith(ErrConnection)
	p.cancel()
}

func (p *pipe) broken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.severed
}
