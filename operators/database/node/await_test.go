package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/einmaltest"
)

// command runs a command and returns what it prints.
type command func(ctx context.Context) (string, error)

// kubectl returns a command of kubectl in the namespace production.
func (s *started) kubectl(args ...string) command {
	return func(ctx context.Context) (string, error) {
		return s.Kubectl(ctx, slices.Concat([]string{"--namespace", "production"}, args)...)
	}
}

// awaitOutput repeats a command until it prints what is wanted.
func awaitOutput(t *testing.T, what string, run command, wanted func(output string) bool) {
	t.Helper()
	einmaltest.Eventually(t, what, func(ctx context.Context) error {
		got, err := run(ctx)
		if err == nil && !wanted(got) {
			err = fmt.Errorf("it prints %q", got)
		}
		return err
	})
}

// is returns whether an output is this one. Spaces and line breaks around both do not count.
func is(want string) func(string) bool {
	return func(got string) bool { return strings.TrimSpace(got) == strings.TrimSpace(want) }
}

// has returns whether an output contains all texts.
func has(want ...string) func(string) bool {
	return func(got string) bool {
		return !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(got, text) })
	}
}
