package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// run starts the servers, runs the command, and stops the servers when it has ended.
func run(args []string, screen io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: local FOLDER COMMAND [ARGUMENTS]: FOLDER is for the data of the servers, COMMAND runs while they run")
	}
	folder, err := filepath.Abs(args[0])
	if err != nil {
		return fmt.Errorf("resolve the directory %s: %w", args[0], err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	unlock, err := lock(folder)
	if err != nil {
		return err
	}
	defer unlock()
	v := log.New(screen, " servers | ", 0) // "einmal dev" prints such a prefix in front of the output of its programs.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	s, err := start(ctx, folder, v)
	if ctx.Err() != nil {
		v.Print("interrupted during start")
		return nil // The kernel ends the servers with this process, if they run already.
	}
	if err != nil {
		return err
	}
	err = beside(s, args[1:], v, signals)
	v.Print("stopping PostgreSQL and Redis …")
	if err = errors.Join(err, s.stop()); err == nil {
		v.Print("stopped")
	}
	return err
}

// beside runs the command and forwards signals to it. If the parent process ends, the command gets SIGTERM.
func beside(s *systems, args []string, v *log.Logger, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	command := exec.Command(args[0], args[1:]...) //nolint:noctx,gosec // Signals end it, in its own order; the caller names it.
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	servers.EndWithParent(command, syscall.SIGTERM)
	if err := command.Start(); err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	told := make(chan struct{})
	guide := &guide{systems: s, einmal: args[0], Logger: v}
	go func() {
		defer close(told)
		guide.watch(ctx)
	}()
	defer func() { cancel(); <-told }()
	parent := os.Getppid()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case received := <-signals:
			cancel() // Stop printing how to log in.
			_ = command.Process.Signal(received)
		case <-look.C:
			if os.Getppid() != parent {
				parent = os.Getppid()
				_ = command.Process.Signal(syscall.SIGTERM)
			}
		}
	}
}

// lock prevents a second run with the same directory.
func lock(folder string) (unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the servers: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory of the servers: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another run uses %s; stop that one first (Ctrl-C) or wait until it ends: %w", folder, err)
	}
	return func() { _ = file.Close() }, nil
}
