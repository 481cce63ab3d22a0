// Package health answers whether an operator works: it calls the probes of the operator and serves /healthz and /readyz.
package health

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

	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

const (
	probeTimeout  = 10 * time.Second // for one probe
	headerTimeout = 10 * time.Second // for a client of the health port to send the header of its request
)

// Probe checks something that an operator needs.
type Probe struct {
	// ID is its name in the answer of /healthz.
	ID string
	// Look returns what is shown there as JSON. It has ten seconds.
	Look func(context.Context) (any, error)
}

// run calls the probe, and returns its answer as JSON.
func (p Probe) run(ctx context.Context) (json.RawMessage, error) {
	var answer json.RawMessage
	err := invoke.Run(ctx, probeTimeout, func(ctx context.Context) error {
		found, err := p.Look(ctx)
		if err != nil {
			return err
		}
		answer, err = json.Marshal(found)
		return err
	})
	if err != nil {
		return nil, errors.New(redact.New().Text(err.Error()))
	}
	return answer, nil
}

// Operator is what /healthz and /readyz show of an operator.
type Operator struct {
	// Identity is the name of the check of /readyz.
	Identity string
	// Probes are called once Begun returns true: before that, startup handlers may not have created yet what they check.
	Probes []Probe
	Begun  func() bool
	// Ready returns an error while the operator is not ready.
	Ready func() error
}

// look calls all probes concurrently. Their errors are joined.
func (o Operator) look(ctx context.Context) (map[string]any, error) {
	found := map[string]any{}
	if !o.Begun() {
		return found, nil
	}
	answers, failures := make([]json.RawMessage, len(o.Probes)), make([]error, len(o.Probes))
	var running sync.WaitGroup
	for i, one := range o.Probes {
		running.Go(func() { answers[i], failures[i] = one.run(ctx) })
	}
	running.Wait()
	for i, one := range o.Probes {
		found[one.ID] = answers[i]
		if failures[i] != nil {
			found[one.ID] = map[string]string{"error": failures[i].Error()}
			failures[i] = fmt.Errorf("probe %s: %w", one.ID, failures[i])
		}
	}
	return found, errors.Join(failures...)
}

// CheckProbes is the health check for a manager that the author provides: it returns the errors of the probes.
func (o Operator) CheckProbes(r *http.Request) error {
	_, err := o.look(r.Context())
	return err
}

// CheckReady is the readiness check: it returns an error while the operator is not ready.
func (o Operator) CheckReady(*http.Request) error { return o.Ready() }

// handler returns the handler of /healthz and /readyz.
func (o Operator) handler() http.Handler {
	ports := http.NewServeMux()
	ports.Handle("/readyz", http.StripPrefix("/readyz", &healthz.Handler{Checks: map[string]healthz.Checker{o.Identity: o.CheckReady}}))
	ports.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		code := http.StatusOK
		found, err := o.look(r.Context())
		if err != nil {
			code = http.StatusInternalServerError
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

// Server opens the health port at an address, and returns the server for a manager.
func (o Operator) Server(ctx context.Context, address string) (*manager.Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open the health port: %w", err)
	}
	return &manager.Server{
		Name: "health", Listener: listener,
		Server: &http.Server{Handler: o.handler(), ReadHeaderTimeout: headerTimeout},
	}, nil
}
