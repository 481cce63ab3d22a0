// Package consent asks the user for confirmation before einmal changes a cluster that it did not start.
package consent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// Flag is the name of the command-line flag that confirms in advance.
const Flag = "--yes-apply-to"

// MissingError reports that the command line does not confirm the change and that there is no terminal to ask on.
type MissingError struct {
	Cluster string
	// Option is the flag with the cluster's name, quoted for a shell.
	Option string
}

// Error names the cluster and the flag.
func (e *MissingError) Error() string {
	return fmt.Sprintf("change cluster %q: not confirmed: it is not a devcluster that einmal dev started\n"+
		"remedy: to change this cluster, add %s", e.Cluster, e.Option)
}

// OtherError reports that the command line names a different cluster from the one that would be changed.
type OtherError struct {
	Given, Cluster, Server string
}

// Error names both clusters.
func (e *OtherError) Error() string {
	return fmt.Sprintf("flag %s: must name the cluster to be changed, %q at %s, got %q",
		Flag, e.Cluster, e.Server, e.Given)
}

// DeclinedError reports that the user did not type the cluster's name.
type DeclinedError struct {
	Cluster string
}

// Error names the cluster.
func (e *DeclinedError) Error() string {
	return fmt.Sprintf("nothing was applied: the answer must be the name of the cluster, %q", e.Cluster)
}

// Question asks the user to type the name of a cluster.
type Question struct {
	// Cluster is the expected answer.
	Cluster string
	// Option is the flag that confirms in advance, with the cluster's name quoted for a shell.
	Option string
	// Given is the value of the flag. If it is not empty, the caller has checked that it equals Cluster.
	Given string
	// Terminal reports whether the user can answer on In.
	Terminal bool
	In       io.Reader
	// Prompt prints a text without a line end.
	Prompt func(text string)
}

// Ask returns nil if the flag or the user's answer names the cluster.
func Ask(ctx context.Context, q Question) error {
	if q.Given != "" {
		return nil
	}
	if !q.Terminal {
		return &MissingError{Cluster: q.Cluster, Option: q.Option}
	}
	q.Prompt(fmt.Sprintf("Type the name of the cluster (%s) to continue: ", q.Cluster))
	typed := make(chan string, 1)
	go func() { // a blocked read cannot be canceled; it ends with the process
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
