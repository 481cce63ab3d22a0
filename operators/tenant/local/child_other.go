//go:build !linux

package main

import "os/exec"

// endWithParent does nothing: other systems than Linux do not offer it.
func endWithParent(*exec.Cmd) {}
