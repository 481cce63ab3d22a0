package process

import (
	"strings"
	"testing"
)

func TestWhatTheKernelAndTheProfileSayIsRead(t *testing.T) {
	got, err := memory("Name:\tbare\nVmHWM:\t   52000 kB\nRssAnon:\t   20000 kB\n")
	if want := (Memory{Anonymous: 20000 << 10, Peak: 52000 << 10}); err != nil || got != want {
		t.Errorf("memory %v, %v; want %v", got, err, want)
	}
	if _, err := memory("Name:\tbare\n"); err == nil {
		t.Error("no memory, and no error")
	}
	bytes, err := totalAlloc(strings.NewReader("heap profile: 1: 2 [3: 4]\n# runtime.MemStats\n# Alloc = 7\n# TotalAlloc = 1234\n"))
	if err != nil || bytes != 1234 {
		t.Errorf("allocated %d, %v; want 1234", bytes, err)
	}
	if _, err := totalAlloc(strings.NewReader("not found")); err == nil {
		t.Error("no profile, and no error")
	}
}

// Where the machine counts no instructions, perf says so.
func TestInstructionsAreReadFromPerf(t *testing.T) {
	for output, want := range map[string]uint64{
		"9876543,,instructions:u,1000,100.00,,\n":         9876543,
		"<not supported>,,instructions:u,0,100.00,,\n":    0,
		"Error: no permission to enable instructions:u\n": 0,
	} {
		if got := counted(output); got != want {
			t.Errorf("%q: got %d, want %d", output, got, want)
		}
	}
}
