// Command einmal develops Kubernetes operators made with the framework Einmal: it runs one from its sources in a real
// control plane on this machine, under the operator's own rights, and restarts it when the sources change.
//
//	einmal dev ./operators/volumeclaim
//	einmal kubectl get crds
package main

import (
	"os"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/command"
)

// version is set by the linker ("make build" does).
var version string

func main() {
	os.Exit(command.Main(os.Args, command.Surroundings{
		Version: version, In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
	}))
}
