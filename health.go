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
	probeTimeout  = 10 * time.Second // for one probe
	headerTimeout = 10 * time.Second // for a client of the health port to send the header of its request
)

// probe is a declared probe.
type probe struct {
	id   string
	look ProbeFunc
}

// run calls the probe, and returns its answer as JSON.
func (p probe) run(ctx context.Context) (json.RawMessage, error) {
	var answer json.RawMessage
	err := invoke.Run(ctx, probeTimeout, func(ctx context.Context) error {
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

// look calls all probes concurrently. Their errors are joined.
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

// healthy returns the health check for a manager that the author provides.
func (op *Operator) healthy(driver *engine.Operator) healthz.Checker {
	return func(r *http.Request) error {
		if !driver.Begun() {
			return nil // Startup handlers may not have created yet what probes check.
		}
		_, err := op.activities.look(r.Context())
		return err
	}
}

// health returns the handler of /healthz and /readyz.
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

// serveHealth adds the health port to the manager of Run.
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
		Server: &http.Server{Handler: op.health(driver), ReadHeaderTimeout: headerTimeout},
	}
	if err := mgr.Add(served); err != nil {
		return fmt.Errorf("add the health port: %w", err)
	}
	return nil
}
