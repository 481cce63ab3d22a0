package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/einmal-operators/einmal/bench/internal/cluster"
	"github.com/einmal-operators/einmal/bench/internal/load"
	"github.com/einmal-operators/einmal/bench/internal/process"
	"github.com/einmal-operators/einmal/bench/internal/report"
)

// operationTimeout is how long one operation on many objects may take.
const operationTimeout = 30 * time.Minute

// contestant is a subject that runs. Make it with start.
type contestant struct {
	subject subject
	control *cluster.Cluster
	program string
	process *process.Process
	objects *load.Load
}

// start starts a subject, and waits until it has seen to a first object.
func (o options) start(ctx context.Context, control *cluster.Cluster, one subject) (*contestant, error) {
	c := &contestant{subject: one, control: control, program: o.program(one)}
	if err := c.run(); err != nil {
		return nil, err
	}
	var err error
	if c.objects, err = load.New(ctx, control, one.kind); err != nil {
		return c, err
	}
	for _, do := range []operation{(*load.Load).Create, (*load.Load).Update, (*load.Load).Delete} {
		if _, err := do(c.objects, ctx, load.Objects{Count: 1}); err != nil {
			return c, c.failed(err)
		}
	}
	return c, c.process.Rest(ctx)
}

// run starts the program.
func (c *contestant) run() (err error) {
	c.process, err = process.Start(c.program, c.log(), append(c.subject.args, "-kubeconfig", c.control.Kubeconfig)...)
	return err
}

func (c *contestant) log() string { return filepath.Clean(c.program + ".log") }

func (c *contestant) failed(err error) error {
	return fmt.Errorf("subject %s: %w (its log: %s)", c.subject.name, err, c.log())
}

// operation is one that a load does with objects.
type operation func(*load.Load, context.Context, load.Objects) (load.Result, error)

// cost is what objects have cost a subject.
type cost struct {
	objects, requests       int
	cpu, drain              time.Duration
	allocated, instructions uint64
	latencies               []float64
}

// measure makes the load, and returns what it has cost the subject until that rests again. It must rest before.
func (c *contestant) measure(ctx context.Context, do operation, of load.Objects) (cost, error) {
	ctx, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	requests, err := c.control.Requests(ctx, c.subject.kind.Resource())
	if err != nil {
		return cost{}, err
	}
	before, err := c.process.Use(ctx)
	if err != nil {
		return cost{}, c.failed(err)
	}
	instructions := c.process.Instructions()
	result, err := do(c.objects, ctx, of)
	if err == nil {
		err = c.process.Rest(ctx)
	}
	counted := instructions()
	if err != nil {
		return cost{}, c.failed(err)
	}
	after, err := c.process.Use(ctx)
	if err != nil {
		return cost{}, c.failed(err)
	}
	requestsAfter, err := c.control.Requests(ctx, c.subject.kind.Resource())
	made := cost{
		objects: of.Count, requests: requestsAfter - requests - result.Requests, cpu: after.CPU - before.CPU, drain: result.Drain,
		allocated: after.Allocated - before.Allocated, instructions: counted,
	}
	for _, latency := range result.Latencies {
		made.latencies = append(made.latencies, latency.Seconds()*1e3)
	}
	return made, err
}

// add adds the cost of other objects.
func (c *cost) add(other cost) {
	c.objects += other.objects
	c.requests += other.requests
	c.cpu += other.cpu
	c.drain += other.drain
	c.allocated += other.allocated
	c.instructions += other.instructions
	c.latencies = append(c.latencies, other.latencies...)
}

// each returns the cost of one object.
func (c *cost) each() report.Operation {
	each := 1 / float64(c.objects)
	return report.Operation{
		CPU: c.cpu.Seconds() * 1e6 * each, Allocated: float64(c.allocated) * each, Instructions: float64(c.instructions) * each,
		Requests: float64(c.requests) * each, Drain: c.drain.Seconds(),
		Median: report.Percentile(c.latencies, 0.5), Slowest99: report.Percentile(c.latencies, 0.99),
	}
}
