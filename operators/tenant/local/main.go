// Local runs a command, such as "einmal dev", beside a PostgreSQL and a Redis of its own, and tells how to log in as the tenants that the
// command makes ready. It is what "make run OPERATOR=tenant" runs.
//
//	local FOLDER EINMAL dev --apply FOLDER/manifests OPERATOR
//
// The servers keep their data in FOLDER, and before the command is started there are the manifests of what the operator needs to reach them.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

func main() {
	// Linux ends the servers when the thread that started them does. The first thread lives as long as the process.
	runtime.LockOSThread()
	err := run(os.Args[1:], os.Stdout)
	var ended *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &ended):
		os.Exit(max(1, ended.ExitCode())) // It has said why.
	default:
		fmt.Fprintf(os.Stderr, "tenant servers: %v\n", err)
		os.Exit(1)
	}
}
