package realnode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Problems returns what this machine lacks for a real node. It changes nothing.
func Problems() []Problem {
	problems := missingPrograms()
	if runtime.GOARCH != "amd64" {
		problems = append(problems, Problem{Text: "the processor is " + runtime.GOARCH + ", and real nodes are made for amd64"})
	}
	if os.Geteuid() != 0 {
		return append(problems, Problem{Text: "the user is not root: containers need namespaces, mounts and cgroups", Remedy: "run devcluster as root"})
	}
	for _, check := range []func() error{canUnshare, canOverlay, hasCgroups} {
		if err := check(); err != nil {
			problems = append(problems, Problem{Text: err.Error()})
		}
	}
	return problems
}

// missingPrograms returns a problem for each program that is not installed.
func missingPrograms() []Problem {
	var problems []Problem
	for _, need := range []struct{ program, of string }{
		{"containerd", "containerd"},
		{"ctr", "containerd"},
		{"runc", "runc"},
		{"nft", "nftables"},
		{filepath.Join(pluginDir, "ptp"), "containernetworking-plugins"},
		{filepath.Join(pluginDir, "host-local"), "containernetworking-plugins"},
		{filepath.Join(pluginDir, "loopback"), "containernetworking-plugins"},
	} {
		if _, err := exec.LookPath(need.program); err != nil {
			problems = append(problems, Problem{
				Text:   fmt.Sprintf("%s is not installed (package %s)", need.program, need.of),
				Remedy: "apt-get install --no-install-recommends containerd runc containernetworking-plugins nftables xfsprogs",
			})
		}
	}
	return problems
}

// canUnshare starts a program in the namespaces of a node.
func canUnshare() error {
	program := exec.Command("true") //nolint:noctx // It ends at once.
	program.SysProcAttr = Isolation()
	if err := program.Run(); err != nil {
		return fmt.Errorf("namespaces cannot be created: %w", err)
	}
	return nil
}

// canOverlay reads the file systems that the kernel has. overlay can be a module that is loaded at its first use.
func canOverlay() error {
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil || strings.Contains(string(known), "\toverlay\n") {
		return err
	}
	var version unix.Utsname
	if err := unix.Uname(&version); err != nil {
		return err
	}
	modules := filepath.Join("/lib/modules", unix.ByteSliceToString(version.Release[:]), "kernel/fs/overlayfs")
	if _, err := os.Stat(modules); err != nil {
		return fmt.Errorf("the kernel has no file system overlay: %w", err)
	}
	return nil
}
