package dev

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

const (
	probeInterval = 3 * time.Second // how often to check whether an existing cluster answers
	probeTimeout  = 5 * time.Second // how long its server may take to answer
)

// watchCluster prints a message when the cluster stops answering and when it answers again, until ctx is done. It ends the
// run by end if the server belongs to a different cluster.
func (s *session) watchCluster(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	answers := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.probe(ctx)
		moved, isMoved := errors.AsType[*cluster.MovedError](err)
		switch {
		case ctx.Err() != nil:
			return
		case isMoved:
			end(moved)
			return
		case err != nil && answers:
			s.dev.Printf("the cluster %s does not answer: %v\neinmal dev waits for it; Ctrl-C stops the operator", s.target.Cluster, err)
		case err == nil && !answers:
			s.dev.Printf("the cluster %s answers again", s.target.Cluster)
		}
		answers = err == nil
	}
}

// probe checks whether the cluster answers.
func (s *session) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTimeout, fmt.Errorf("no answer within %s", probeTimeout))
	defer cancel()
	return s.target.Probe(ctx)
}
