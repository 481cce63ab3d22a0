// Excluded from builds with the race detector: compiling Kubernetes with it takes
// many minutes and is not needed, because the tests run the built binary.

//go:build !race

// Command devcluster runs a Kubernetes cluster for development on a single
// machine, without containers or root.
package main

import (
	"os"

	"github.com/einmal-operators/einmal/devcluster/internal/cli"
	"github.com/einmal-operators/einmal/devcluster/internal/component"
)

func main() {
	os.Exit(cli.Main(os.Args, cli.Programs{Component: component.Run, Kubectl: component.Kubectl}))
}
