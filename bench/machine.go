package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/einmal-operators/einmal/bench/internal/report"
)

// machine describes where the benchmark runs. What cannot be found out stays empty.
func machine(ctx context.Context) report.Machine {
	commit, _ := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	average, _, _ := strings.Cut(string(load), " ")
	return report.Machine{
		Time: time.Now().UTC().Format(time.RFC3339), Commit: strings.TrimSpace(string(commit)), Go: runtime.Version(),
		Kernel: strings.TrimSpace(string(kernel)), Processor: processor(), Processors: runtime.NumCPU(), Load: average,
	}
}

// processor returns the name of the first processor.
func processor() string {
	described, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(described)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
