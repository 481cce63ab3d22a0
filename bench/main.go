// Bench measures what an object costs an operator: beside a bare client, and an operator by hand on controller-runtime. It starts a control plane, runs one
// subject after the other, and changes objects as users would. docs/performance.md says how to read the result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/einmal-operators/einmal/bench/gadget"
	"github.com/einmal-operators/einmal/bench/internal/cluster"
	"github.com/einmal-operators/einmal/bench/internal/report"
)

// reference is the subject that the others are compared with.
const reference = "controller-runtime"

// subject is an operator to measure.
type subject struct {
	name string
	kind cluster.Kind
	args []string
}

func subjects() []subject {
	einmal := []string{"run", "-leader-elect=false", "-health-probe-bind-address", "0", "-metrics-bind-address", "0"}
	return []subject{
		{name: "bare", kind: cluster.Kind{Name: gadget.Bare}},
		{name: reference, kind: cluster.Kind{Name: gadget.Runtime}},
		{name: "einmal", kind: cluster.Kind{Name: gadget.Recorded, Recorded: true}, args: einmal},
		{name: "einmal-annotation", kind: cluster.Kind{Name: gadget.Annotated}, args: einmal},
	}
}

// options are the flags.
type options struct {
	devcluster, output, only, row string
	objects, rounds               int
}

func main() {
	var o options
	flag.StringVar(&o.devcluster, "devcluster", "bin/devcluster", "`program` that starts the control plane")
	flag.StringVar(&o.output, "output", "bin/bench", "`folder` for report.json, report.svg, the programs, their logs and the data of the control plane")
	flag.StringVar(&o.only, "subjects", strings.Join(names(subjects()), ","), "`names` of what is measured, separated by commas")
	flag.IntVar(&o.objects, "objects", 2000, "`number` of objects")
	flag.IntVar(&o.rounds, "rounds", 3, "`number` of times that all subjects are started and measured")
	flag.StringVar(&o.row, "row", "", "`question` about many objects that is measured instead, once: rest, restart, one, steady or growth")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func names(of []subject) []string {
	var all []string
	for _, one := range of {
		all = append(all, one.name)
	}
	return all
}

// chosen returns the subjects that the flag names.
func (o options) chosen() ([]subject, error) {
	var all []subject
	for name := range strings.SplitSeq(o.only, ",") {
		at := slices.IndexFunc(subjects(), func(one subject) bool { return one.name == name })
		if at < 0 {
			return nil, fmt.Errorf("flag -subjects: there is no subject %q, only %s", name, strings.Join(names(subjects()), ", "))
		}
		all = append(all, subjects()[at])
	}
	if o.objects < batches || o.rounds < 1 {
		return nil, fmt.Errorf("flag -objects must be at least %d, and -rounds at least 1", batches)
	}
	return all, nil
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	measured, err := o.chosen()
	if err != nil {
		return err
	}
	if o.output, err = filepath.Abs(o.output); err != nil {
		return err
	}
	if err := o.build(ctx, measured, progress); err != nil {
		return err
	}
	if o.row != "" {
		return o.runRow(ctx, measured, out, progress)
	}
	return o.runRounds(ctx, measured, out, progress)
}

// runRounds measures the creation, an update and the deletion of all objects.
func (o options) runRounds(ctx context.Context, measured []subject, out, progress io.Writer) error {
	found := report.Report{Machine: machine(ctx), Objects: o.objects}
	_, _ = fmt.Fprintln(progress, "starting the control plane")
	var kinds []cluster.Kind
	for _, one := range measured {
		kinds = append(kinds, one.kind)
		found.Subjects = append(found.Subjects, report.Subject{Name: one.name})
	}
	control, err := cluster.Start(ctx, o.devcluster, filepath.Join(o.output, "devcluster"), kinds...)
	if err != nil {
		return err
	}
	defer control.Stop()
	for number := range o.rounds {
		_, _ = fmt.Fprintf(progress, "round %d of %d\n", number+1, o.rounds)
		made, err := o.round(ctx, control, measured, number, progress)
		if err != nil {
			return err
		}
		for which := range made {
			found.Subjects[which].Rounds = append(found.Subjects[which].Rounds, made[which])
		}
	}
	return o.write(found, out)
}

// build builds the subjects.
func (o options) build(ctx context.Context, measured []subject, progress io.Writer) error {
	if err := os.MkdirAll(o.output, 0o750); err != nil {
		return err
	}
	for _, one := range measured {
		_, _ = fmt.Fprintln(progress, "building", one.name)
		command := exec.CommandContext(ctx, "go", "build", "-o", o.program(one), "github.com/einmal-operators/einmal/bench/subjects/"+one.name) //nolint:gosec // One of ours.
		command.Stderr = progress
		if err := command.Run(); err != nil {
			return fmt.Errorf("build subject %s: %w", one.name, err)
		}
	}
	return nil
}

func (o options) program(of subject) string { return filepath.Join(o.output, of.name) }

// write writes the report to files, and its tables to out.
func (o options) write(found report.Report, out io.Writer) error {
	for name, write := range map[string]func(io.Writer) error{
		"report.json": found.WriteJSON,
		"report.svg":  func(to io.Writer) error { return found.Draw(to, reference) },
	} {
		if err := writeFile(filepath.Join(o.output, name), write); err != nil {
			return err
		}
	}
	return found.Print(out, reference)
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path) //nolint:gosec // In the folder that the user names.
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
