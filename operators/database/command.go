package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/einmal-operators/einmal/operators/database/bucket"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// terminationLog is the file that the kubelet reads why a container has ended from.
const terminationLog = "/dev/termination-log"

// command is what the program does in the Pods of databases, instead of running the operator.
type command struct {
	// getenv returns a variable of the environment, or "".
	getenv func(name string) string
	// out gets the log.
	out io.Writer
	// pauses are the times between attempts to copy backups.
	pauses []time.Duration
}

const uploadUsage = `Usage: database upload-backups FOLDER

Copies the backups of the folder to an S3 bucket, and deletes those from the bucket that need not be kept. Jobs that make backups run it.

It reads these variables: S3_ENDPOINT, S3_REGION, S3_BUCKET, S3_PREFIX, S3_ACCESS_KEY, S3_SECRET_KEY, S3_AUTHORITY (certificates in PEM, optional), and
KEEP_COUNT or KEEP_DAYS: how many backups of the bucket are kept, or for how many days.
`

const fetchUsage = `Usage: database fetch-backup [--unless FILE] FOLDER

Fetches a backup from an S3 bucket into the folder. The Pod of a new database runs it, and does nothing if FILE exists.

It reads these variables: S3_ENDPOINT, S3_REGION, S3_BUCKET, S3_PREFIX, S3_ACCESS_KEY, S3_SECRET_KEY, S3_AUTHORITY (certificates in PEM, optional), and
RESTORE: the name of the backup, or "newest".
`

// failed is the exit code of a command that has failed.
const failed = manifest.UploadFailed

// runInPod runs a command of the Pods of databases. It reports false if the arguments are not such a command. The code is that of the process.
func runInPod(arguments []string) (code int, done bool) {
	if len(arguments) == 0 {
		return 0, false
	}
	run := command{getenv: os.Getenv, out: os.Stdout, pauses: []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute}}
	do, reason := run.upload, "BackupFailed"
	switch arguments[0] {
	case manifest.UploadCommand:
	case manifest.FetchCommand:
		do, reason = run.fetch, restoreFailed
	default:
		return 0, false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := do(ctx, arguments[1:])
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0, true
	case errors.Is(err, errUsage):
		return 2, true
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", reason, err)
	said := fmt.Sprintf("%s: %.900v", reason, err)
	if err := os.WriteFile(terminationLog, []byte(said), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return failed, true
}

// errUsage reports arguments that are wrong. The usage has been printed.
var errUsage = errors.New("the arguments are wrong")

// parse reads the arguments, which end with one folder.
func (c command) parse(set *flag.FlagSet, arguments []string, usage string) (folder string, err error) {
	set.SetOutput(c.out)
	set.Usage = func() { fmt.Fprint(c.out, usage) }
	switch err := set.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return "", err
	case err != nil:
		return "", errUsage
	case set.NArg() != 1:
		set.Usage()
		return "", errUsage
	}
	return set.Arg(0), nil
}

// upload copies the backups of a folder to the bucket.
func (c command) upload(ctx context.Context, arguments []string) error {
	folder, err := c.parse(flag.NewFlagSet(manifest.UploadCommand, flag.ContinueOnError), arguments, uploadUsage)
	if err != nil {
		return err
	}
	keep, err := c.retention()
	if err != nil {
		return err
	}
	to, err := c.bucket()
	if err != nil {
		return err
	}
	return c.again(ctx, func() error { return to.Upload(ctx, folder, keep, time.Now()) })
}

// again repeats what fails until it succeeds, unless the error does not pass by itself or enough time has passed.
func (c command) again(ctx context.Context, do func() error) error {
	for _, pause := range c.pauses {
		err := do()
		if err == nil || !bucket.Passes(err) {
			return err
		}
		fmt.Fprintf(c.out, "%v; the next attempt is in %s\n", err, pause)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
	return do()
}

// fetch fetches a backup from the bucket into a folder.
func (c command) fetch(ctx context.Context, arguments []string) error {
	set := flag.NewFlagSet(manifest.FetchCommand, flag.ContinueOnError)
	unless := set.String("unless", "", "`FILE` that exists if nothing is to be fetched")
	folder, err := c.parse(set, arguments, fetchUsage)
	if err != nil {
		return err
	}
	if _, err := os.Stat(*unless); err == nil {
		fmt.Fprintf(c.out, "%s exists, and nothing is fetched\n", *unless)
		return nil
	}
	name := c.getenv("RESTORE")
	if name == manifest.Newest {
		name = ""
	}
	from, err := c.bucket()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Clean(folder), 0o700); err != nil {
		return err
	}
	_, err = from.Fetch(ctx, name, folder)
	return err
}

// bucket returns the bucket that the environment names.
func (c command) bucket() (*bucket.Bucket, error) {
	return bucket.Open(bucket.Settings{
		Endpoint: c.getenv("S3_ENDPOINT"), Region: c.getenv("S3_REGION"), Bucket: c.getenv("S3_BUCKET"), Prefix: c.getenv("S3_PREFIX"),
		AccessKey: c.getenv("S3_ACCESS_KEY"), SecretKey: c.getenv("S3_SECRET_KEY"), Authority: c.getenv("S3_AUTHORITY"),
	}, c.out)
}

// retention returns which backups of the bucket are kept.
func (c command) retention() (bucket.Retention, error) {
	var keep bucket.Retention
	for name, into := range map[string]*int{"KEEP_COUNT": &keep.Count, "KEEP_DAYS": &keep.Days} {
		text := c.getenv(name)
		if text == "" {
			continue
		}
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 {
			return keep, fmt.Errorf("the variable %s must be a number above 0: it is %q", name, text)
		}
		*into = number
	}
	if (keep.Count > 0) == (keep.Days > 0) {
		return keep, errors.New("set either KEEP_COUNT or KEEP_DAYS")
	}
	return keep, nil
}
