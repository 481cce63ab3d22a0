// Local runs a command such as "einmal dev" together with its own PostgreSQL and Redis. When a tenant becomes ready, it prints the commands
// that log in as the tenant. "make run OPERATOR=tenant" uses it.
//
//	local FOLDER EINMAL dev --apply FOLDER/manifests OPERATOR
//
// The servers keep their data in FOLDER. Before it starts the command, local writes manifests with the connection data into
// FOLDER/manifests.
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
