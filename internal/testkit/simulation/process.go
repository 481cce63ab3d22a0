package simulation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// ErrCrashed is what a process gets that has crashed and does not know it: nothing that it does has an effect.
var ErrCrashed = errors.New("the process has crashed")

// ErrRefused is what an effect gets that the outside system refuses.
var ErrRefused = errors.New("refused for now")

// errTimedOut is what an effect gets that the outside system does not answer in time.
var errTimedOut = errors.New("no answer in time")

// errEnded is the error of a process that has begun and ended by itself, as one does that loses its lease.
var errEnded = errors.New("run the manager")

// answeredError is the failure of a point at which the API server answers with a fault instead of doing what is asked.
type answeredError struct{ with Kind }

// Error names the fault.
func (e *answeredError) Error() string { return string(e.with) }

// Process is one process of an operator, between its start and its stop or crash.
type Process struct {
	world *World
	died  chan struct{}
	// skew is how far its clock is ahead of the others.
	skew time.Duration
	// apart is set for the operator of a schedule with TwoOperators: it is neither observed nor disturbed.
	apart bool

	mu     sync.Mutex
	end    Fault // how it crashed; the zero value while it has not
	lines  map[*stream]struct{}
	joined sync.WaitGroup
	// running are the attempts of handlers that have begun and not ended.
	running map[declaration.Attempt]bool
}

func newProcess(w *World, apart bool) *Process {
	return &Process{world: w, apart: apart, died: make(chan struct{}), lines: map[*stream]struct{}{}, running: map[declaration.Attempt]bool{}}
}

// dead reports whether the process has crashed.
func (p *Process) dead() bool {
	select {
	case <-p.died:
		return true
	default:
		return false
	}
}

// die ends the process: nothing it sends from now on arrives, and its watches break.
func (p *Process) die(how Fault) {
	p.mu.Lock()
	if p.end.Kind != "" {
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
	declared := hook.Of().Observe(operator, p.onAttempt, p.world.setup.Log)
	options := p.options(declared)
	if options.LeaderElection {
		hook.Of().StretchElection(operator, electionSlower)
	}
	mgr, err := operator.NewManager(p.connection(), options)
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
		return fmt.Errorf("%w: %w", errEnded, err)
	}
	return nil
}

func (p *Process) onAttempt(attempt declaration.Attempt) {
	if p.dead() || p.apart {
		return
	}
	p.noteAttempt(attempt)
	if attempt.Outcome != "" {
		p.world.history.called(attempt)
	}
}

func (p *Process) connection() *rest.Config {
	through := p.world.Server.Config()
	through.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if p.apart {
			next = p.world.ofAnother(next)
		}
		return p.skewed(roundTripper(func(r *http.Request) (*http.Response, error) { return p.send(r, next) }))
	})
	return through
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip answers a request.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (p *Process) options(declared declaration.Operator) ctrl.Options {
	anyName := true
	return ctrl.Options{
		Logger:         logr.FromSlogHandler(slog.DiscardHandler), // The zero Logger would be the operator's.
		LeaderElection: p.world.setup.Schedule.elects(), LeaderElectionNamespace: cmp.Or(declared.Rights.Home, electionHome),
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller:     config.Controller{SkipNameValidation: &anyName},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return p.world.mapper, nil },
	}
}

// send sends a request of the process, with the faults of its point.
func (p *Process) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	request, known := requestOf(r)
	switch {
	case p.apart && request.Verb == verbWatch && p.reaches():
		return p.watch(r, next, "")
	case p.apart:
		return p.sendDirectly(r, next)
	case known && !p.dead() && !p.world.allowed(request): //nolint:contextcheck // Looking is not part of the request.
		return forbidden(r, request), nil
	case known && request.Verb == verbWatch && p.reaches():
		return p.watch(r, next, request.Resource)
	case !known || !request.point():
		return p.sendDirectly(r, next)
	}
	var answer *http.Response
	err := p.reach(request.String(), call{do: func() error { //nolint:contextcheck // Users act with a context of their own.
		if p.world.unreachable() {
			return apiserver.ErrConnection
		}
		var err error
		answer, err = next.RoundTrip(r) //nolint:bodyclose // The caller closes it.
		if err == nil && request.write() && !r.URL.Query().Has("dryRun") {
			err = p.noteAnswer(request, answer)
		}
		return err
	}, timeout: r.Context().Done()})
	if answered, is := errors.AsType[*answeredError](err); is {
		return answered.answer(r, request), nil
	}
	switch {
	case errors.Is(err, ErrRefused):
		return overloaded(r), nil
	case errors.Is(err, ErrCrashed):
		return nil, apiserver.ErrConnection
	case errors.Is(err, errTimedOut):
		return nil, cmp.Or(r.Context().Err(), apiserver.ErrConnection)
	case err != nil:
		return nil, err
	}
	return answer, nil
}

// reaches reports whether requests of the process arrive.
func (p *Process) reaches() bool { return !p.dead() && !p.world.unreachable() }

// sendDirectly sends a request that is no point.
func (p *Process) sendDirectly(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if !p.reaches() {
		return nil, apiserver.ErrConnection
	}
	return next.RoundTrip(r)
}

// call is what a process asks for at a point.
type call struct {
	do func() error
	// timeout is closed when the caller waits no longer; nil waits for effectTimeout.
	timeout <-chan struct{}
}

// effectTimeout is how long an effect waits that gets no answer, as the clients of outside systems do.
const effectTimeout = time.Minute

// reach does what a process asks for at a point, with the faults of the point.
func (p *Process) reach(what string, asked call) error {
	if p.dead() {
		return ErrCrashed
	}
	faults := p.world.reach(what)
	if p.world.setup.Schedule.Has(SlowCalls) && ofHandler(what) {
		p.wait(slowBy)
	}
	for _, fault := range faults {
		if err := p.meet(fault, asked); err != nil {
			return err
		}
	}
	switch {
	case p.dead():
		return ErrCrashed
	case p.world.overloaded() && !isEffect(what):
		return &answeredError{with: Overloaded}
	}
	err := asked.do()
	for _, fault := range faults {
		switch fault.Kind { //nolint:exhaustive // The others are over.
		case CrashAfter:
			p.die(fault)
			return ErrCrashed
		case AnswerLost:
			return errors.Join(err, apiserver.ErrConnection)
		case HungAfter:
			p.hang(asked)
			return errTimedOut
		}
	}
	return err
}

// meet does what a fault does before its point is carried out. An error means that the point is not carried out.
func (p *Process) meet(fault Fault, asked call) error {
	switch fault.Kind {
	case CrashBefore, CrashThenDown, CrashThenWiped, CrashThenReset, CrashThenOlder, CrashThenForged:
		p.die(fault)
		return ErrCrashed
	case Refused:
		return ErrRefused
	case Forbidden, NotServed, Throttled, DeniedByWebhook, OverQuota, Conflict:
		return &answeredError{with: fault.Kind}
	case Hung:
		p.hang(asked)
		return errTimedOut
	case UserEdits, UserDeletes:
		p.world.actAsUser(fault, p.handledAt(fault.At.What))
		p.wait(slowBy)
	default:
		p.world.disturb(fault)
	}
	return nil
}

// hang waits until the caller gives up, or the process ends.
func (p *Process) hang(asked call) {
	if asked.timeout == nil {
		p.wait(effectTimeout)
		return
	}
	select {
	case <-asked.timeout:
	case <-p.died:
	}
}

// wait lets time go by, unless the process ends.
func (p *Process) wait(d time.Duration) {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-p.died:
	}
}

// overlap is how long a call to the outside takes while two replicas run: long enough for both to be in the same handler,
// which would otherwise be left to the scheduler of Go.
const overlap = 100 * time.Millisecond

// alone calls the outside system, one call at a time.
func (w *World) alone(do func() (any, error)) (any, error) {
	w.effects <- struct{}{}
	defer func() { <-w.effects }() // Also after a panic, which is an error of the handler.
	return do()
}

// Effect does something outside of the cluster, and is a point as a request is. The value that do returns is what the outside system
// holds afterwards. A successful call counts, unless the effect is idempotent: then only changes of the value count.
func (p *Process) Effect(name string, idempotent bool, do func() (any, error)) error {
	what := effectVerb + " " + name
	callers := p.attemptsAt(what)
	return p.reach(what, call{
		do: func() error {
			if p.world.setup.Schedule.Has(TwoReplicas) {
				p.wait(overlap)
			}
			if p.dead() {
				return ErrCrashed
			}
			value, err := p.world.alone(do)
			if err == nil {
				p.world.history.noteCallers(what, callers)
			}
			switch {
			case err != nil:
			case idempotent:
				p.world.history.set(what, value)
			default:
				p.world.history.effect(what)
			}
			return err
		},
	})
}

// noteAnswer keeps in mind what was written. What only a real API server can do fails the run.
func (p *Process) noteAnswer(request Request, answer *http.Response) error {
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(text))
	switch {
	case err != nil:
		return err
	case answer.StatusCode == http.StatusNotImplemented:
		var status metav1.Status
		if err := json.Unmarshal(text, &status); err != nil {
			return err
		}
		p.world.setup.Failed(fmt.Errorf("%s: %s", request, status.Message)) //nolint:err113 // It is a report.
	case answer.StatusCode < http.StatusMultipleChoices:
		p.world.history.wrote(request, text)
		p.world.noteTimes(text)
		p.world.noteRecords(text)
	}
	return nil
}
