// Package consent asks a person before einmal changes a cluster that it did not start.
package consent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// Flag is the name of the command-line flag that gives the answer in advance.
const Flag = "--yes-apply-to"

// MissingError reports that the command line does not name the cluster, and that no terminal is there to ask on.
type MissingError struct {
	Cluster string
	// Option is the flag with the cluster's name, quoted for a shell.
	Option string
}

// Error names the cluster and the flag.
func (e *MissingError) Error() string {
	return fmt.Sprintf("the cluster %q is not a devcluster that einmal dev started, so the command line must name it\n"+
		"remedy: if you want to change this cluster, add %s", e.Cluster, e.Option)
}

// OtherError reports that the command line names another cluster than the one that would be changed.
type OtherError struct {
	Given, Cluster, Server string
}

// Error names both clusters.
func (e *OtherError) Error() string {
	return fmt.Sprintf("option %s: must be the name of the cluster that will be changed, %q at %s, got %q",
		Flag, e.Cluster, e.Server, e.Given)
}

// DeclinedError reports that the person at the terminal did not type the cluster's name.
type DeclinedError struct {
	Cluster string
}

// Error names the cluster.
func (e *DeclinedError) Error() string {
	return fmt.Sprintf("nothing was applied: the answer was not the name of the cluster, %q", e.Cluster)
}

// Question asks for the name of a cluster.
type Question struct {
	// Cluster is the name to be typed.
	Cluster string
	// Option is the flag that gives the answer in advance, quoted for a shell.
	Option string
	// Given is what the command line has named, and was checked to be Cluster, or empty.
	Given string
	// Terminal reports whether a person can answer on In.
	Terminal bool
	In       io.Reader
	// Prompt shows a text without a line end.
	Prompt func(text string)
}

// Ask returns nil if the command line or the person at the terminal names the cluster.
func Ask(ctx context.Context, q Question) error {
	if q.Given != "" {
		return nil
	}
	if !q.Terminal {
		return &MissingError{Cluster: q.Cluster, Option: q.Option}
	}
	q.Prompt(fmt.Sprintf("Type the name of the cluster (%s) to continue: ", q.Cluster))
	typed := make(chan string, 1)
	go func() { // ends with the process if nothing is typed
		line, _ := bufio.NewReader(q.In).ReadString('\n')
		typed <- strings.TrimSpace(line)
	}()
	select {
	case answer := <-typed:
		if answer == q.Cluster {
			return nil
		}
		return &DeclinedError{Cluster: q.Cluster}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
