package einmal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/core/scrub"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/engine"
)

const (
	// probeDeadline ends the context of a probe.
	probeDeadline = 10 * time.Second
	// headerDeadline is how long a client of the health port may take to say what it wants.
	headerDeadline = 10 * time.Second
)

// probe is a declared probe.
type probe struct {
	id   string
	look ProbeFunc
}

// run looks once, and gives the answer as JSON.
func (p probe) run(ctx context.Context) (json.RawMessage, error) {
	var answer json.RawMessage
	err := invoke.Run(ctx, probeDeadline, func(ctx context.Context) error {
		found, err := p.look(ctx)
		if err != nil {
			return err
		}
		answer, err = json.Marshal(found)
		return err
	})
	if err != nil {
		return nil, errors.New(scrub.New().Text(err.Error()))
	}
	return answer, nil
}

// look runs all probes at the same time. What failed is joined into one error.
func (a activities) look(ctx context.Context) (map[string]any, error) {
	answers, failures := make([]json.RawMessage, len(a.probes)), make([]error, len(a.probes))
	var running sync.WaitGroup
	for i, one := range a.probes {
		running.Go(func() { answers[i], failures[i] = one.run(ctx) })
	}
	running.Wait()
	found := map[string]any{}
	for i, one := range a.probes {
		found[one.id] = answers[i]
		if failures[i] != nil {
			found[one.id] = map[string]string{"error": failures[i].Error()}
			failures[i] = fmt.Errorf("probe %s: %w", one.id, failures[i])
		}
	}
	return found, errors.Join(failures...)
}

// healthy is the check of a manager's own health port.
func (op *Operator) healthy(driver *engine.Operator) healthz.Checker {
	return func(r *http.Request) error {
		if !driver.Begun() {
			return nil // What probes look at need not be there yet.
		}
		_, err := op.activities.look(r.Context())
		return err
	}
}

// health serves /healthz and /readyz.
func (op *Operator) health(driver *engine.Operator) http.Handler {
	ready := func(*http.Request) error { return driver.Ready() }
	ports := http.NewServeMux()
	ports.Handle("/readyz", http.StripPrefix("/readyz", &healthz.Handler{Checks: map[string]healthz.Checker{op.settings.Identity: ready}}))
	ports.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		found, code := map[string]any{}, http.StatusOK
		if driver.Begun() {
			var err error
			if found, err = op.activities.look(r.Context()); err != nil {
				code = http.StatusInternalServerError
			}
		}
		text, err := json.Marshal(found)
		if err != nil {
			code = http.StatusInternalServerError
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write(append(text, '\n'))
	})
	return ports
}

// serveHealth adds the health port to the operator's own manager.
func (op *Operator) serveHealth(ctx context.Context, mgr manager.Manager, driver *engine.Operator, address string) error {
	if address = orNowhere(address); address == nowhere {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("open the health port: %w", err)
	}
	served := &manager.Server{
		Name: "health", Listener: listener,
		Server: &http.Server{Handler: op.health(driver), ReadHeaderTimeout: headerDeadline},
	}
	if err := mgr.Add(served); err != nil {
		return fmt.Errorf("add the health port: %w", err)
	}
	return nil
}
