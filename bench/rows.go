package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/einmal-operators/einmal/bench/internal/cluster"
	"github.com/einmal-operators/einmal/bench/internal/load"
	"github.com/einmal-operators/einmal/bench/internal/process"
	"github.com/einmal-operators/einmal/bench/internal/report"
)

const (
	// idle is how long the subjects are watched while nothing happens.
	idle = time.Minute
	// alone is how many updates follow each other in the row "one".
	alone = 100
	// rate and steady are the changes per second in the row "steady", and for how long.
	rate   = 50
	steady = time.Minute
	// few is how many objects the row "growth" begins with.
	few = 1000
)

// row is a question about subjects that have many objects.
type row struct {
	name, question string
	measure        func(*scene, context.Context) error
}

func rows() []row {
	return []row{
		{"rest", "what do objects cost while nothing happens?", (*scene).rest},
		{"restart", "how long does a new process take until it rests?", (*scene).restart},
		{"one", "what does one update cost among many objects?", (*scene).one},
		{"steady", fmt.Sprintf("how long does a change take at %d changes a second?", rate), (*scene).steady},
		{"growth", fmt.Sprintf("does an object cost more among many than among %d?", few), (*scene).growth},
	}
}

// scene is one subject with many objects.
type scene struct {
	bench   bench
	objects *load.Load
	running *process.Process
	figures []report.Figure
}

func (s *scene) add(name string, value float64) {
	_, _ = fmt.Fprintf(s.bench.progress, "  %s: %.4g\n", name, value)
	s.figures = append(s.figures, report.Figure{Name: name, Value: value})
}

// runRow measures one row. Each subject has a control plane of its own, so that none cleans up after another one.
func (o options) runRow(ctx context.Context, measured []subject, out, progress io.Writer) error {
	at := slices.IndexFunc(rows(), func(one row) bool { return one.name == o.row })
	if at < 0 {
		var known []string
		for _, one := range rows() {
			known = append(known, one.name+" ("+one.question+")")
		}
		return fmt.Errorf("flag -row: there is no row %q, only %s", o.row, strings.Join(known, ", "))
	}
	if o.objects <= few && o.row == "growth" {
		return fmt.Errorf("flag -objects: the row growth needs more than %d", few)
	}
	found := report.Table{Title: fmt.Sprintf("%s, %d objects", o.row, o.objects), Machine: machine(ctx)}
	for _, one := range measured {
		_, _ = fmt.Fprintf(progress, "%s, %d objects: %s\n", o.row, o.objects, one.name)
		s := &scene{bench: bench{options: o, subject: one, progress: progress}}
		if err := s.run(ctx, rows()[at]); err != nil {
			return fmt.Errorf("subject %s: %w (its log: %s)", one.name, err, s.bench.log())
		}
		found.Columns = append(found.Columns, report.Column{Subject: one.name, Figures: s.figures})
	}
	if err := writeFile(filepath.Join(o.output, fmt.Sprintf("%s-%d.json", o.row, o.objects)), found.WriteJSON); err != nil {
		return err
	}
	return found.Print(out, reference)
}

// run runs the subject with a control plane of its own.
func (s *scene) run(ctx context.Context, asked row) (err error) {
	if s.bench.control, err = cluster.Start(ctx, s.bench.options.devcluster, filepath.Join(s.bench.options.output, "devcluster")); err != nil {
		return err
	}
	defer s.bench.control.Stop()
	if err := s.start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.running.Stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.objects, err = load.New(ctx, s.bench.control, s.bench.subject.kind); err != nil {
		return err
	}
	for _, do := range []operation{s.objects.Create, s.objects.Delete} {
		if _, err := do(ctx, load.Objects{Count: 1}); err != nil {
			return err
		}
	}
	return asked.measure(s, ctx)
}

func (s *scene) start() (err error) {
	s.running, err = process.Start(s.bench.options.program(s.bench.subject), s.bench.log(), append(s.bench.subject.args, "-kubeconfig", s.bench.control.Kubeconfig)...)
	return err
}

// populate creates all objects.
func (s *scene) populate(ctx context.Context) (report.Operation, error) {
	return s.bench.measure(ctx, s.running, s.objects.Create, load.Objects{Count: s.bench.options.objects})
}

// memory adds the anonymous memory of the subject.
func (s *scene) memory(name string) error {
	now, err := s.running.Memory()
	s.add(name, float64(now.Anonymous)/1e6)
	return err
}

func (s *scene) rest(ctx context.Context) error {
	created, err := s.populate(ctx)
	if err != nil {
		return err
	}
	s.add("creation of an object, µs of CPU", created.CPU)
	s.add("creation of all, s", created.Drain)
	if err := s.memory("anonymous memory, MB"); err != nil {
		return err
	}
	nothing := func(ctx context.Context, _ load.Objects) (load.Result, error) {
		load.Pause(ctx, idle)
		return load.Result{Latencies: []time.Duration{0}}, ctx.Err()
	}
	used, err := s.bench.measure(ctx, s.running, nothing, load.Objects{Count: 1})
	s.add("at rest, % of a core", used.CPU/1e4/idle.Seconds())
	s.add("at rest, requests", used.Requests)
	return err
}

func (s *scene) restart(ctx context.Context) error {
	if _, err := s.populate(ctx); err != nil {
		return err
	}
	requests, err := s.bench.control.Requests(ctx, s.bench.subject.kind.Resource)
	if err != nil {
		return err
	}
	if err := s.running.Stop(); err != nil {
		return err
	}
	begun := time.Now()
	if err := s.start(); err != nil {
		return err
	}
	if err := s.running.Rest(ctx); err != nil {
		return err
	}
	s.add("until it rests, s", time.Since(begun).Seconds())
	used, err := s.running.Use(ctx)
	if err != nil {
		return err
	}
	after, err := s.bench.control.Requests(ctx, s.bench.subject.kind.Resource)
	if err != nil {
		return err
	}
	s.add("CPU, s", used.CPU.Seconds())
	s.add("requests for single objects", float64(after-requests))
	if err := s.memory("anonymous memory, MB"); err != nil {
		return err
	}
	updated, err := s.objects.Update(ctx, load.Objects{Count: 1}) // It rests because it is ready, and not because it waits for something.
	s.add("first update, ms", updated.Drain.Seconds()*1e3)
	return err
}

func (s *scene) one(ctx context.Context) error {
	if _, err := s.populate(ctx); err != nil {
		return err
	}
	one := func(ctx context.Context, of load.Objects) (all load.Result, err error) {
		for i := range of.Count {
			updated, err := s.objects.Update(ctx, load.Objects{First: i, Count: 1})
			if err != nil {
				return all, err
			}
			all.Requests++
			all.Latencies = append(all.Latencies, updated.Latencies...)
		}
		return all, nil
	}
	used, err := s.bench.measure(ctx, s.running, one, load.Objects{Count: alone})
	s.add("update, µs of CPU", used.CPU)
	s.add("update, median ms", used.Median)
	s.add("update, p99 ms", used.Slowest99)
	return err
}

func (s *scene) steady(ctx context.Context) error {
	if _, err := s.populate(ctx); err != nil {
		return err
	}
	count := min(s.bench.options.objects, int(rate*steady.Seconds()))
	used, err := s.bench.measure(ctx, s.running, s.objects.Update, load.Objects{Count: count, Every: time.Second / rate})
	s.add("update, µs of CPU", used.CPU)
	s.add("update, median ms", used.Median)
	s.add("update, p99 ms", used.Slowest99)
	return err
}

func (s *scene) growth(ctx context.Context) error {
	for _, of := range []load.Objects{{Count: few}, {First: few, Count: s.bench.options.objects - few}} {
		among := fmt.Sprintf("among %d: ", of.First+of.Count)
		created, err := s.bench.measure(ctx, s.running, s.objects.Create, of)
		if err != nil {
			return err
		}
		s.add(among+"creation, µs of CPU", created.CPU)
		if err := s.memory(among + "anonymous memory, MB"); err != nil {
			return err
		}
		updated, err := s.bench.measure(ctx, s.running, s.objects.Update, load.Objects{Count: few})
		if err != nil {
			return err
		}
		s.add(among+"update, µs of CPU", updated.CPU)
	}
	return nil
}
