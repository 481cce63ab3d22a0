package process_test

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
	"testing"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
)

// TestMain lets the test binary act as a program that starts another one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "holder" {
		os.Exit(hold(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// hold starts a program, prints its output and never exits.
func hold(args []string) int {
	spawner, err := process.NewSpawner()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = spawner.Close() }()
	if _, err := spawner.Start(process.Command{Args: args, Stdout: os.Stdout, Stderr: os.Stderr}); err != nil {
		fmt.Println(err)
		return 1
	}
	select {}
}

func newSpawner(t *testing.T) *process.Spawner {
	t.Helper()
	spawner, err := process.NewSpawner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spawner.Close() })
	return spawner
}

// alive reports whether a process exists and is not a zombie.
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
				t.Fatalf("process %d still exists after %s", pid, within)
			}
			<-tick.C
		}
	}
}

func TestKillingTheParentStopsTheWholeGroup(t *testing.T) {
	for name, trap := range map[string]string{"handles SIGTERM": "", "ignores SIGTERM": "trap '' TERM; "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The program starts a child. Both print their process IDs.
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

// startHolder starts a process that runs hold, and returns the process IDs that the script prints in its first two lines.
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

func TestExitCodesAreThoseOfAShell(t *testing.T) {
	spawner := newSpawner(t)
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "kill -TERM $$": 143} {
		code, err := spawner.Run(t.Context(), process.Command{Args: []string{"sh", "-c", script}})
		if err != nil || code != want {
			t.Errorf("%s: code %d, error %v, want %d", script, code, err, want)
		}
	}
}

func TestStartErrorNamesTheCause(t *testing.T) {
	_, err := newSpawner(t).Start(process.Command{Args: []string{"/nowhere/operator"}})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/operator: no such file") {
		t.Errorf("error %v does not name the missing file", err)
	}
}

func TestStopLetsTheProgramFinish(t *testing.T) {
	spawner := newSpawner(t)
	var out bytes.Buffer
	ready, w := io.Pipe()
	p, err := spawner.Start(process.Command{
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
		t.Errorf("code %d, output %q; want code 3 and output \"finishing\"", p.ExitCode(), out.String())
	}
}

func TestStopKillsAProgramThatIgnoresSIGTERM(t *testing.T) {
	spawner := newSpawner(t)
	ready, w := io.Pipe()
	p, err := spawner.Start(process.Command{
		Args: []string{"sh", "-c", `trap '' TERM; echo ready; while :; do sleep 0.05; done`}, Stdout: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if p.Stop(100*time.Millisecond) || p.ExitCode() != 137 {
		t.Errorf("code %d, want 137", p.ExitCode())
	}
}

func TestKillAllKillsEverythingAndPreventsStarts(t *testing.T) {
	spawner := newSpawner(t)
	var processes []*process.Process
	for range 3 {
		p, err := spawner.Start(process.Command{Args: []string{"sleep", "600"}})
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, p)
	}
	spawner.KillAll()
	for _, p := range processes {
		if code := p.ExitCode(); code != 137 {
			t.Errorf("code %d, want 137", code)
		}
	}
	if _, err := spawner.Start(process.Command{Args: []string{"true"}}); err == nil {
		t.Error("a program was started after KillAll")
	}
}

func TestAProgramLeavesNoProcessInItsGroup(t *testing.T) {
	var out bytes.Buffer
	script := `sh -c 'trap "" TERM HUP; while :; do sleep 0.1; done' >/dev/null 2>&1 & echo $!`
	if _, err := newSpawner(t).Run(t.Context(), process.Command{Args: []string{"sh", "-c", script}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	waitGone(t, 10*time.Second, pid)
}

func TestOnExitIsCalledAfterTheLastOutput(t *testing.T) {
	var out bytes.Buffer
	p, err := newSpawner(t).Start(process.Command{
		Args: []string{"sh", "-c", "echo last"}, Stdout: &out, OnExit: func() { out.WriteString("exited") },
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if want := "last\nexited"; out.String() != want {
		t.Errorf("output %q, want %q", out.String(), want)
	}
}

func TestExitErrorHasTheStandardError(t *testing.T) {
	_, err := newSpawner(t).Output(t.Context(), process.Command{Args: []string{"sh", "-c", "echo no >&2; exit 4"}})
	var exit *process.ExitError
	if !errors.As(err, &exit) || exit.Code != 4 || exit.Stderr != "no" {
		t.Errorf("error %v, want exit code 4 and standard error \"no\"", err)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newSpawner(t).Run(ctx, process.Command{Args: []string{"sleep", "600"}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}
