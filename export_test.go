package einmal

import (
	"context"
	"io"

	"k8s.io/client-go/rest"
)

// UninstallFrom does what the verb uninstall does, on an API server that no kubeconfig names.
func (op *Operator) UninstallFrom(ctx context.Context, config *rest.Config, out io.Writer, args ...string) error {
	var flags uninstallFlags
	if err := flags.parse(args, out); err != nil {
		return err
	}
	return op.uninstall(ctx, config, flags, out)
}
