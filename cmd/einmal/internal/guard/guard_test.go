package guard_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
)

// TestMain lets the test binary play the programs that the tests need: a guard, and a program that starts one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "guard":
			os.Exit(guard.Main(os.Args[2:]))
		case "holder":
			os.Exit(hold(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// hold starts a program beneath a guard, prints its output and never ends.
func hold(args []string) int {
	lifeline, err := guard.NewLifeline()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = lifeline.Close() }()
	starter := guard.NewStarter(lifeline, os.Args[0], "guard")
	if _, err := starter.Start(guard.Command{Args: args, Stdout: os.Stdout, Stderr: os.Stderr}); err != nil {
		fmt.Println(err)
		return 1
	}
	select {}
}

func newStarter(t *testing.T) *guard.Starter {
	t.Helper()
	lifeline, err := guard.NewLifeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lifeline.Close() })
	return guard.NewStarter(lifeline, os.Args[0], "guard")
}

// alive tells whether a process exists that is not just a corpse.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	state, err := exec.CommandContext(t.Context(), "ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	text := strings.TrimSpace(string(state))
	return err == nil && text != "" && !strings.HasPrefix(text, "Z")
}

func waitGone(t *testing.T, within time.Duration, pids ...int) {
	t.Helper()
	deadline := time.Now().Add(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, pid := range pids {
		for alive(t, pid) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d is still there after %s", pid, within)
			}
			<-tick.C
		}
	}
}

func TestKillingTheHolderEndsTheWholeGroup(t *testing.T) {
	for name, trap := range map[string]string{"obedient": "", "deaf to SIGTERM": "trap '' TERM; "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The program has a child of its own; both say who they are.
			script := trap + `sh -c 'echo $$; while :; do sleep 0.1; done' & echo $$; while :; do sleep 0.1; done`
			cmd, pids := startHolder(t, script)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			waitGone(t, 15*time.Second, pids...)
		})
	}
}

// startHolder starts a holder of a program whose first two lines are process ids.
func startHolder(t *testing.T, script string) (*exec.Cmd, []int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "holder", "sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := make([]int, 2)
	if _, err := fmt.Fscan(out, &pids[0], &pids[1]); err != nil {
		t.Fatal(err)
	}
	return cmd, pids
}

func TestExitCodesPassThroughTheGuard(t *testing.T) {
	starter := newStarter(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "kill -TERM $$": 143} {
		code, err := starter.Run(t.Context(), guard.Command{Args: []string{"sh", "-c", script}})
		if err != nil || code != want {
			t.Errorf("%s: code %d, error %v, want %d", script, code, err, want)
		}
	}
}

func TestAProgramThatCannotBeStartedSaysWhy(t *testing.T) {
	_, err := newStarter(t).Start(guard.Command{Args: []string{"/nowhere/operator"}})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/operator: no such file") {
		t.Errorf("error %v does not say what is missing", err)
	}
}

func TestStopLetsTheProgramFinish(t *testing.T) {
	starter := newStarter(t)
	var out bytes.Buffer
	ready, w := io.Pipe()
	p, err := starter.Start(guard.Command{
		Args:   []string{"sh", "-c", `trap 'echo finishing; exit 3' TERM; echo ready >&2; while :; do sleep 0.05; done`},
		Stdout: &out, Stderr: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, ready) }()
	if !p.Stop(10*time.Second) || p.ExitCode() != 3 || out.String() != "finishing\n" {
		t.Errorf("code %d, output %q; want 3 and what the program says at its end", p.ExitCode(), out.String())
	}
}

func TestStopKillsWhatDoesNotFinish(t *testing.T) {
	starter := newStarter(t)
	ready, w := io.Pipe()
	p, err := starter.Start(guard.Command{
		Args: []string{"sh", "-c", `trap '' TERM; echo ready; while :; do sleep 0.05; done`}, Stdout: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if p.Stop(100*time.Millisecond) || p.ExitCode() != 137 {
		t.Errorf("code %d, want a kill", p.ExitCode())
	}
}

func TestKillAllEndsEverythingAndStartsNothingAnyMore(t *testing.T) {
	starter := newStarter(t)
	var processes []*guard.Process
	for range 3 {
		p, err := starter.Start(guard.Command{Args: []string{"sleep", "600"}})
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, p)
	}
	starter.KillAll()
	for _, p := range processes {
		if code := p.ExitCode(); code != 137 {
			t.Errorf("code %d, want 137", code)
		}
	}
	if _, err := starter.Start(guard.Command{Args: []string{"true"}}); err == nil {
		t.Error("a program was started after everything was ended")
	}
}

func TestAKilledGuardLeavesNothing(t *testing.T) {
	starter := newStarter(t)
	r, w := io.Pipe()
	p, err := starter.Start(guard.Command{Args: []string{"sh", "-c", `echo $$ $PPID; exec sleep 600`}, Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	var pid, guardPID int
	if _, err := fmt.Fscan(r, &pid, &guardPID); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(guardPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitGone(t, 10*time.Second, pid)
	if code := p.ExitCode(); code != 137 {
		t.Errorf("code %d, want 137", code)
	}
}

func TestOutputOfAFailedProgramIsInTheError(t *testing.T) {
	_, err := newStarter(t).Output(t.Context(), guard.Command{Args: []string{"sh", "-c", "echo no >&2; exit 4"}})
	var exit *guard.ExitError
	if !errors.As(err, &exit) || exit.Code != 4 || exit.Stderr != "no" {
		t.Errorf("error %v, want exit code 4 and the program's words", err)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newStarter(t).Run(ctx, guard.Command{Args: []string{"sleep", "600"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
