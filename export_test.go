package einmal

import (
	"context"
	"flag"
	"io"
	"time"

	"k8s.io/client-go/rest"
)

// WatchSilence sets how long a watch may deliver nothing before it is opened again. It is an option of New.
func WatchSilence(d time.Duration) OperatorOption {
	return option{name: "WatchSilence", operator: func(op *Operator) error {
		op.deadlines.Silence = d
		return nil
	}}
}

// UninstallFrom does what the command uninstall does, on an API server that no kubeconfig names.
func (op *Operator) UninstallFrom(ctx context.Context, config *rest.Config, out io.Writer, args ...string) error {
	var flags uninstallFlags
	set := flag.NewFlagSet("uninstall", flag.ContinueOnError)
	flags.declare(set)
	if err := set.Parse(args); err != nil {
		return err
	}
	return op.uninstall(ctx, config, flags, writers{out: out, failures: out})
}
