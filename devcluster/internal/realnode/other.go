//go:build !linux

package realnode

import (
	"runtime"
	"syscall"
)

// Problems returns what this machine lacks for a real node.
func Problems() []Problem {
	return []Problem{{Text: "the system is " + runtime.GOOS + ", and containers need Linux"}}
}

// Isolation returns nil. Only Linux has namespaces.
func Isolation() *syscall.SysProcAttr { return nil }

// RemoveCgroups does nothing. Only Linux has cgroups.
func RemoveCgroups(string) error { return nil }

// Run returns 1. Only Linux can run a real node.
func Run([]string) int { return 1 }
