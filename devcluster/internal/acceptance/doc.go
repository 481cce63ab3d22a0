// Package acceptance tests the built binary as its users run it. It imports
// nothing of Kubernetes' servers: they are in the binary, and compiling them
// again, with the race detector, would take many minutes.
package acceptance
