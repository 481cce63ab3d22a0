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
		{"one", "what does one update cost among many objects?", (*scene).update},
		{"steady", fmt.Sprintf("how long does a change take at %d changes a second?", rate), (*scene).steady},
		{"growth", fmt.Sprintf("does an object cost more among many than among %d?", few), (*scene).growth},
	}
}

// scene is one subject with many objects.
type scene struct {
	one      *contestant
	objects  int
	progress io.Writer
	figures  []report.Figure
}

func (s *scene) add(name string, value float64) {
	_, _ = fmt.Fprintf(s.progress, "  %s: %.4g\n", name, value)
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
		s := &scene{objects: o.objects, progress: progress}
		if err := o.askOne(ctx, one, s, rows()[at]); err != nil {
			return err
		}
		found.Columns = append(found.Columns, report.Column{Subject: one.name, Figures: s.figures})
	}
	if err := writeFile(filepath.Join(o.output, fmt.Sprintf("%s-%d.json", o.row, o.objects)), found.WriteJSON); err != nil {
		return err
	}
	return found.Print(out, reference)
}

// askOne starts a control plane and the subject, and measures a row.
func (o options) askOne(ctx context.Context, one subject, s *scene, asked row) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	control, err := cluster.Start(ctx, o.devcluster, filepath.Join(o.output, "devcluster"), one.kind)
	if err != nil {
		return err
	}
	defer control.Stop()
	s.one, err = o.start(ctx, control, one)
	if s.one != nil {
		defer func() { err = errors.Join(err, s.one.process.Stop()) }()
	}
	if err != nil {
		return err
	}
	return asked.measure(s, ctx)
}

// do makes a load, and returns what each of its objects has cost.
func (s *scene) do(ctx context.Context, do operation, of load.Objects) (report.Operation, error) {
	made, err := s.one.measure(ctx, do, of)
	if err != nil {
		return report.Operation{}, err
	}
	return made.each(), nil
}

// populate creates all objects.
func (s *scene) populate(ctx context.Context) (report.Operation, error) {
	return s.do(ctx, (*load.Load).Create, load.Objects{Count: s.objects})
}

// memory adds the anonymous memory of the subject.
func (s *scene) memory(name string) error {
	now, err := s.one.process.Memory()
	s.add(name, float64(now.Anonymous)/1e6)
	return err
}

// updated adds what an update has cost.
func (s *scene) updated(ctx context.Context, do operation, of load.Objects) error {
	used, err := s.do(ctx, do, of)
	s.add("update, µs of CPU", used.CPU)
	s.add("update, median ms", used.Median)
	s.add("update, p99 ms", used.Slowest99)
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
	nothing := func(_ *load.Load, ctx context.Context, _ load.Objects) (load.Result, error) {
		load.Pause(ctx, idle)
		return load.Result{Latencies: []time.Duration{0}}, ctx.Err()
	}
	used, err := s.do(ctx, nothing, load.Objects{Count: 1})
	s.add("at rest, % of a core", used.CPU/1e4/idle.Seconds())
	s.add("at rest, requests", used.Requests)
	return err
}

func (s *scene) restart(ctx context.Context) error {
	if _, err := s.populate(ctx); err != nil {
		return err
	}
	resource := s.one.subject.kind.Resource()
	before, err := s.one.control.Requests(ctx, resource)
	if err != nil {
		return err
	}
	if err := s.one.process.Stop(); err != nil {
		return err
	}
	begun := time.Now()
	if err := s.one.run(); err != nil {
		return err
	}
	if err := s.one.process.Rest(ctx); err != nil {
		return err
	}
	s.add("until it rests, s", time.Since(begun).Seconds())
	used, err := s.one.process.Use(ctx)
	if err != nil {
		return err
	}
	after, err := s.one.control.Requests(ctx, resource)
	if err != nil {
		return err
	}
	s.add("CPU, s", used.CPU.Seconds())
	s.add("requests for single objects", float64(after-before))
	if err := s.memory("anonymous memory, MB"); err != nil {
		return err
	}
	updated, err := s.one.objects.Update(ctx, load.Objects{Count: 1}) // It rests because it is ready, and not because it waits for something.
	s.add("first update, ms", updated.Drain.Seconds()*1e3)
	return err
}

func (s *scene) update(ctx context.Context) error {
	if _, err := s.populate(ctx); err != nil {
		return err
	}
	one := func(l *load.Load, ctx context.Context, of load.Objects) (all load.Result, err error) {
		for i := range of.Count {
			updated, err := l.Update(ctx, load.Objects{First: i, Count: 1})
			if err != nil {
				return all, err
			}
			all.Requests++
			all.Latencies = append(all.Latencies, updated.Latencies...)
		}
		return all, nil
	}
	return s.updated(ctx, one, load.Objects{Count: min(alone, s.objects)})
}

func (s *scene) steady(ctx context.Context) error {
	if _, err := s.populate(ctx); err != nil {
		return err
	}
	return s.updated(ctx, (*load.Load).Update, load.Objects{Count: min(s.objects, int(rate*steady.Seconds())), Every: time.Second / rate})
}

func (s *scene) growth(ctx context.Context) error {
	for _, of := range []load.Objects{{Count: few}, {First: few, Count: s.objects - few}} {
		among := fmt.Sprintf("among %d: ", of.First+of.Count)
		created, err := s.do(ctx, (*load.Load).Create, of)
		if err != nil {
			return err
		}
		s.add(among+"creation, µs of CPU", created.CPU)
		if err := s.memory(among + "anonymous memory, MB"); err != nil {
			return err
		}
		updated, err := s.do(ctx, (*load.Load).Update, load.Objects{Count: few})
		if err != nil {
			return err
		}
		s.add(among+"update, µs of CPU", updated.CPU)
	}
	return nil
}
