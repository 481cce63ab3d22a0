package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/einmal-operators/einmal/bench/internal/cluster"
	"github.com/einmal-operators/einmal/bench/internal/load"
	"github.com/einmal-operators/einmal/bench/internal/report"
)

// batches is in how many parts the objects of an operation are. Subjects take turns after each part, so that a machine whose speed changes is the same for
// all of them.
const batches = 4

// round starts all subjects, and measures each operation on all objects. In each round, another subject is first.
func (o options) round(ctx context.Context, control *cluster.Cluster, measured []subject, number int, progress io.Writer) (made []report.Round, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all []*contestant
	defer func() {
		for _, one := range all {
			err = errors.Join(err, one.process.Stop())
		}
	}()
	for _, one := range measured {
		started, err := o.start(ctx, control, one)
		if started != nil {
			all = append(all, started)
		}
		if err != nil {
			return nil, err
		}
	}
	made = make([]report.Round, len(all))
	for _, one := range []struct {
		name string
		do   operation
		into func(*report.Round) *report.Operation
	}{
		{"create", (*load.Load).Create, func(r *report.Round) *report.Operation { return &r.Create }},
		{"update", (*load.Load).Update, func(r *report.Round) *report.Operation { return &r.Update }},
		{"delete", (*load.Load).Delete, func(r *report.Round) *report.Operation { return &r.Delete }},
	} {
		costs, err := o.inTurns(ctx, all, number, one.do)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
		for which := range all {
			each := costs[which].each()
			*one.into(&made[which]) = each
			_, _ = fmt.Fprintf(progress, "  %s, %s: %.1f s, %.0f µs of CPU for each object\n", one.name, all[which].subject.name, each.Drain, each.CPU)
			if err := all[which].noteMemory(&made[which], one.name == "create"); err != nil {
				return nil, err
			}
		}
	}
	return made, nil
}

// inTurns does one operation on all objects of all subjects.
func (o options) inTurns(ctx context.Context, all []*contestant, number int, do operation) ([]cost, error) {
	costs := make([]cost, len(all))
	for batch := range batches {
		part := load.Objects{First: o.objects * batch / batches}
		part.Count = o.objects*(batch+1)/batches - part.First
		for turn := range all {
			which := (turn + batch + number) % len(all)
			made, err := all[which].measure(ctx, do, part)
			if err != nil {
				return nil, err
			}
			costs[which].add(made)
		}
	}
	return costs, nil
}

func (c *contestant) noteMemory(into *report.Round, created bool) error { //nolint:revive // It is the moment, and not a mode.
	now, err := c.process.Memory()
	if err != nil {
		return c.failed(err)
	}
	if into.Peak = now.Peak; created {
		into.Anonymous = now.Anonymous
	}
	return nil
}
