package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/einmal-operators/einmal/bench/internal/cluster"
	"github.com/einmal-operators/einmal/bench/internal/load"
	"github.com/einmal-operators/einmal/bench/internal/process"
	"github.com/einmal-operators/einmal/bench/internal/report"
)

// operationTimeout is how long one operation on all objects may take.
const operationTimeout = 30 * time.Minute

// bench measures one subject.
type bench struct {
	control  *cluster.Cluster
	options  options
	subject  subject
	progress io.Writer
}

func (b bench) log() string { return filepath.Join(b.options.output, b.subject.name+".log") }

// round runs the subject from its start to its end.
func (b bench) round(ctx context.Context) (made report.Round, err error) {
	kind := b.subject.kind
	running, err := process.Start(b.options.program(b.subject), b.log(), append(b.subject.args, "-kubeconfig", b.control.Kubeconfig)...)
	if err != nil {
		return made, err
	}
	defer func() {
		if stopped := running.Stop(); err == nil {
			err = stopped
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	objects, err := load.New(ctx, b.control, kind)
	if err != nil {
		return made, err
	}
	// The subject has begun once it has seen to a first object.
	for _, do := range []operation{objects.Create, objects.Update, objects.Delete} {
		if _, err := do(ctx, load.Objects{Count: 1}); err != nil {
			return made, err
		}
	}
	for _, one := range []struct {
		name string
		do   operation
		into *report.Operation
	}{{"create", objects.Create, &made.Create}, {"update", objects.Update, &made.Update}, {"delete", objects.Delete, &made.Delete}} {
		if *one.into, err = b.measure(ctx, running, one.do, load.Objects{Count: b.options.objects}); err != nil {
			return made, fmt.Errorf("%s: %w", one.name, err)
		}
		_, _ = fmt.Fprintf(b.progress, "  %s: %.1f s, %.0f µs of CPU for each object\n", one.name, one.into.Drain, one.into.CPU)
		now, err := running.Memory()
		if err != nil {
			return made, err
		}
		if made.Peak = now.Peak; one.into == &made.Create {
			made.Anonymous = now.Anonymous
		}
	}
	return made, nil
}

// operation is one that a load does with objects.
type operation func(context.Context, load.Objects) (load.Result, error)

// measure makes the load, and returns what it has cost the subject until that rests again.
func (b bench) measure(ctx context.Context, running *process.Process, do operation, of load.Objects) (report.Operation, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	if err := running.Rest(ctx); err != nil {
		return report.Operation{}, err
	}
	requests, err := b.control.Requests(ctx, b.subject.kind.Resource)
	if err != nil {
		return report.Operation{}, err
	}
	before, err := running.Use(ctx)
	if err != nil {
		return report.Operation{}, err
	}
	instructions := running.Instructions()
	result, err := do(ctx, of)
	if err == nil {
		err = running.Rest(ctx)
	}
	counted := instructions()
	if err != nil {
		return report.Operation{}, err
	}
	after, err := running.Use(ctx)
	if err != nil {
		return report.Operation{}, err
	}
	requestsAfter, err := b.control.Requests(ctx, b.subject.kind.Resource)
	if err != nil {
		return report.Operation{}, err
	}
	var latencies []float64
	for _, latency := range result.Latencies {
		latencies = append(latencies, latency.Seconds()*1e3)
	}
	each := 1 / float64(of.Count)
	return report.Operation{
		CPU:       (after.CPU - before.CPU).Seconds() * 1e6 * each,
		Allocated: float64(after.Allocated-before.Allocated) * each, Instructions: float64(counted) * each,
		Requests: float64(requestsAfter-requests-result.Requests) * each,
		Drain:    result.Drain.Seconds(), Median: report.Percentile(latencies, 0.5), Slowest99: report.Percentile(latencies, 0.99),
	}, nil
}
