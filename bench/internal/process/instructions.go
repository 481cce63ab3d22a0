package process

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Instructions counts those that the process executes in user mode, until the returned function is called. It returns 0 where perf is missing or the
// machine does not count them.
func (p *Process) Instructions() func() uint64 {
	counter := exec.Command("perf", "stat", "-x,", "-e", "instructions:u", "-p", strconv.Itoa(p.command.Process.Pid)) //nolint:noctx,gosec // It is ended below.
	said := &bytes.Buffer{}
	counter.Stderr = said
	if counter.Start() != nil {
		return func() uint64 { return 0 }
	}
	return func() uint64 {
		_ = counter.Process.Signal(os.Interrupt)
		_ = counter.Wait()
		return counted(said.String())
	}
}

// counted reads the output of perf.
func counted(output string) uint64 {
	for line := range strings.Lines(output) {
		columns := strings.Split(line, ",")
		if count, err := strconv.ParseUint(columns[0], 10, 64); err == nil {
			return count
		}
	}
	return 0
}
