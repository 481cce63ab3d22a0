package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal/internal/engine"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// ErrCrashed is what a process gets that has crashed and does not know it: nothing that it does has an effect.
var ErrCrashed = errors.New("the process has crashed")

// ErrRefused is what an effect gets that the outside system refuses.
var ErrRefused = errors.New("refused for now")

// What a request gets that the API server answers with 403 or 404 for a reason that is not the object's.
var (
	errForbidden = errors.New("forbidden for now")
	errNotServed = errors.New("the kind is not served for now")
)

// Process is one process of an operator, between its start and its stop or crash.
type Process struct {
	world *World
	died  chan struct{}

	mu     sync.Mutex
	end    Kind // how it crashed; "" while it has not
	lines  map[*stream]struct{}
	joined sync.WaitGroup
}

func newProcess(w *World) *Process {
	return &Process{world: w, died: make(chan struct{}), lines: map[*stream]struct{}{}}
}

// dead tells whether the process has crashed.
func (p *Process) dead() bool {
	select {
	case <-p.died:
		return true
	default:
		return false
	}
}

// die ends the process: nothing it sends from now on arrives, and its watches break.
func (p *Process) die(how Kind) {
	p.mu.Lock()
	if p.end != "" {
		p.mu.Unlock()
		return
	}
	p.end = how
	close(p.died)
	p.mu.Unlock()
	p.breakWatches()
}

func (p *Process) breakWatches() {
	p.mu.Lock()
	open := p.lines
	p.lines = map[*stream]struct{}{}
	p.mu.Unlock()
	for s := range open {
		s.sever()
	}
}

// run runs an operator until the context ends or the process crashes.
func (p *Process) run(ctx context.Context, operator Operator) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	declared := operator.Observe(p.witness, p.world.setup.Log)
	connection, options := p.connection(), p.options(operator, declared) //nolint:contextcheck // What goes wrong around a request is none of its business.
	if p.world.setup.Schedule.Has(Standby) {
		if err := operator.Elect(engine.Elected{Config: connection, Options: &options, Home: electionHome, Slower: electionSlower}); err != nil {
			return fmt.Errorf("let the operator be elected: %w", err)
		}
	}
	mgr, err := ctrl.NewManager(connection, options)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := operator.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the operator: %w", err)
	}
	go func() {
		select {
		case <-p.died:
			cancel()
		case <-ctx.Done():
		}
	}()
	err = mgr.Start(ctx)
	p.breakWatches()
	p.joined.Wait()
	if err != nil && !p.dead() {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func (p *Process) witness(attempt engine.Attempt) {
	if !p.dead() {
		p.world.history.called(attempt)
	}
}

func (p *Process) connection() *rest.Config {
	through := p.world.Server.Config()
	through.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return p.send(r, next) })
	})
	return through
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip answers a request.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (p *Process) options(operator Operator, declared engine.Declared) ctrl.Options {
	anyName, grace := true, grace
	return ctrl.Options{
		Scheme: declared.Scheme, Logger: logr.Discard(), Cache: operator.CacheOptions(), NewCache: operator.NewCache,
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller:              config.Controller{SkipNameValidation: &anyName},
		MapperProvider:          func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return p.world.mapper, nil },
		GracefulShutdownTimeout: &grace,
	}
}

// send sends a request of the process, if nothing goes wrong.
func (p *Process) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	request, known := requestOf(r)
	if known && !p.dead() && !p.world.allowed(request) {
		return forbidden(r, request), nil
	}
	if known && request.Verb == verbWatch && !p.dead() && !p.world.unreachable() {
		return p.watch(r, next, request.Resource)
	}
	if !known || !request.point() {
		if p.dead() || p.world.unreachable() {
			return nil, apiserver.ErrConnection
		}
		return next.RoundTrip(r)
	}
	var answer *http.Response
	err := p.reach(request.String(), func() error {
		if p.world.unreachable() {
			return apiserver.ErrConnection
		}
		var err error
		answer, err = next.RoundTrip(r) //nolint:bodyclose // The caller closes it.
		if err == nil && request.write() {
			err = p.note(request, answer)
		}
		return err
	})
	switch {
	case errors.Is(err, ErrRefused):
		return overloaded(r), nil
	case errors.Is(err, errForbidden):
		return forbidden(r, request), nil
	case errors.Is(err, errNotServed):
		return notServed(r), nil
	case errors.Is(err, ErrCrashed):
		return nil, apiserver.ErrConnection
	case err != nil:
		return nil, err
	}
	return answer, nil
}

// reach does what a process asks for at a point, if nothing goes wrong there.
func (p *Process) reach(what string, do func() error) error {
	if p.dead() {
		return ErrCrashed
	}
	faults := p.world.reach(what)
	for _, fault := range faults {
		switch {
		case fault.Kind.Crash() && fault.Kind != CrashAfter:
			p.die(fault.Kind)
			return ErrCrashed
		case fault.Kind == Refused:
			return ErrRefused
		case fault.Kind == Forbidden:
			return errForbidden
		case fault.Kind == NotServed:
			return errNotServed
		default:
			p.world.disturb(fault)
		}
	}
	err := do()
	for _, fault := range faults {
		switch fault.Kind { //nolint:exhaustive // The others are over.
		case CrashAfter:
			p.die(fault.Kind)
			return ErrCrashed
		case AnswerLost:
			return errors.Join(err, apiserver.ErrConnection)
		}
	}
	return err
}

// overlap is how long a call to the outside takes while two replicas run: long enough for both to be in the same handler,
// which would otherwise be left to the scheduler of Go.
const overlap = 100 * time.Millisecond

// Effect does something outside of the cluster, and is a point as a request is. What it is set to then is returned by do.
func (p *Process) Effect(name string, do func() (any, error)) error {
	return p.reach(effectVerb+" "+name, func() error {
		if p.world.setup.Schedule.Has(TwoReplicas) {
			<-time.After(overlap)
		}
		p.world.effects <- struct{}{}
		value, err := do()
		<-p.world.effects
		if err == nil {
			p.world.history.set(effectVerb+" "+name, value)
		}
		return err
	})
}

// note keeps in mind what was written.
func (p *Process) note(request Request, answer *http.Response) error {
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(text))
	if err != nil {
		return err
	}
	if answer.StatusCode < http.StatusMultipleChoices {
		p.world.history.wrote(request, text)
	}
	return nil
}

// overloaded is the answer of an API server that has too much to do.
func overloaded(r *http.Request) *http.Response {
	return failure(r, metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "overloaded"})
}

// forbidden is the answer of an API server to somebody who has no right.
func forbidden(r *http.Request, asked Request) *http.Response {
	resource, group, _ := strings.Cut(asked.Resource, ".")
	return failure(r, metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Group: group, Kind: resource},
		Message: fmt.Sprintf("%s is forbidden: the operator has no right to %s it; declare what handlers do beside handling with einmal.Access or einmal.Applies",
			asked.Resource, asked.Verb),
	})
}

// notServed is the answer of an API server that does not know the path: the version of the kind, or its subresource.
func notServed(r *http.Request) *http.Response {
	return failure(r, metav1.Status{
		Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{},
		Message: "the server could not find the requested resource",
	})
}

func failure(r *http.Request, status metav1.Status) *http.Response {
	code := int(status.Code)
	status.TypeMeta, status.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
	body, err := json.Marshal(status)
	if err != nil {
		body = []byte(status.Message)
	}
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
