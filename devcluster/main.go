// Kubernetes would have to be compiled again for the race detector, which takes
// many minutes and tests nothing of this module: the tests run the built binary.

//go:build !race

// Command devcluster runs a Kubernetes cluster for development on one machine,
// without containers and without root.
package main

import (
	"os"

	"github.com/einmal-operators/einmal/devcluster/internal/cli"
	"github.com/einmal-operators/einmal/devcluster/internal/component"
)

func main() {
	os.Exit(cli.Main(os.Args, cli.Programs{Component: component.Run, Kubectl: component.Kubectl}))
}
