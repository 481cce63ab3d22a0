// Command einmal helps to develop Kubernetes operators that use the Einmal framework. It runs an operator from its
// sources in a real control plane on this machine, with the operator's own permissions, and restarts it when the
// sources change.
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
	os.Exit(command.Main(os.Args, version))
}
