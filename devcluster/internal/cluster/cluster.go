// Package cluster runs a development cluster: it prepares the data directory,
// starts the components in order, waits until the cluster is ready, and stops
// everything in reverse order.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/pki"
	"github.com/einmal-operators/einmal/devcluster/internal/shell"
	"github.com/einmal-operators/einmal/devcluster/internal/supervise"
)

const (
	kubeconfigName = "kubeconfig"
	logDir         = "logs"

	// The components are stopped in three steps; together with the kill that
	// follows a step that takes too long they stay below five seconds.
	controllersGrace = 1200 * time.Millisecond
	apiServerGrace   = 2000 * time.Millisecond
	etcdGrace        = 1300 * time.Millisecond

	// noticeTime is how long the end of a component may take to be noticed
	// after the first sign of it.
	noticeTime = 300 * time.Millisecond
)

// componentError says that a component ended by itself.
type componentError string

func (e componentError) Error() string { return string(e) }

// Options say what cluster to run.
type Options struct {
	// Program is the path of the binary that the components are part of.
	Program string
	// Data is the data directory.
	Data string
	// Fresh deletes the data of earlier runs first.
	Fresh bool
	// Kubeconfig is the file to write for the user; empty means the file
	// "kubeconfig" in the data directory.
	Kubeconfig string
	// Nodes is the number of simulated nodes.
	Nodes int
	// Out gets the line to copy into a shell, Progress everything else.
	Out, Progress io.Writer
}

// running is a cluster being started, up, or being stopped.
type running struct {
	Options
	dir   instance.Dir
	group *supervise.Group
	state instance.State
	start time.Time

	server, managerPort, schedulerPort port

	etcd, apiServer *supervise.Process
	controllers     []*supervise.Process

	// client and http act as the administrator.
	client kubernetes.Interface
	http   *http.Client
}

// Up runs a cluster until ctx ends. It returns nil when the cluster was stopped
// that way, and an error when it could not start or a component failed.
func Up(ctx context.Context, o Options) error {
	r := &running{Options: o, start: time.Now()}
	var err error
	if r.dir, err = instance.At(o.Data); err != nil {
		return err
	}
	file, err := r.kubeconfigFile() // Before anything is made or deleted.
	if err != nil {
		return err
	}
	if err := r.dir.Prepare(); err != nil {
		return err
	}
	lock, stale, err := r.dir.Lock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the lock is let go of in any case
	if stale != nil {
		r.say("note: the last instance, process %d, ended without cleaning up; taking over", stale.PID)
	}
	if r.group, err = supervise.NewGroup(lock); err != nil {
		return err
	}
	err = r.run(ctx, file)
	switch {
	case ctx.Err() != nil:
		err = nil // told to stop: whatever was interrupted by that is no error
	case err != nil:
		err = r.rootCause(err)
	}
	return errors.Join(err, r.stop())
}

// rootCause returns the failure of a component when there is one: then err, say
// of a refused connection, is only what was noticed first.
func (r *running) rootCause(err error) error {
	if _, ok := errors.AsType[componentError](err); ok {
		return err
	}
	select {
	case p := <-r.group.Failed():
		return r.failure(p)
	case <-time.After(noticeTime):
		return err
	}
}

func (r *running) run(ctx context.Context, kubeconfig string) error {
	if err := r.prepare(kubeconfig); err != nil {
		return err
	}
	if err := r.startControlPlane(ctx); err != nil {
		return err
	}
	if err := r.startControllers(ctx); err != nil {
		return err
	}
	r.state.Ready = true
	if err := r.dir.WriteState(r.state); err != nil {
		return err
	}
	r.say("ready after %.1f s; Ctrl-C stops the cluster and keeps its data", time.Since(r.start).Seconds())
	// A reader that has gone away is no reason to end.
	_, _ = fmt.Fprintf(r.Out, "export KUBECONFIG=%s\n", shell.Quote(r.state.Kubeconfig))
	select {
	case <-ctx.Done():
		return nil
	case p := <-r.group.Failed():
		return r.failure(p)
	}
}

// prepare does everything that comes before the first process. The kubeconfig is
// the file to write for the user.
func (r *running) prepare(kubeconfig string) error {
	if err := r.takeData(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir.File(logDir), 0o700); err != nil {
		return err
	}
	if err := os.Remove(r.dir.File(etcdReady)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := r.reservePorts(); err != nil {
		return err
	}
	admin, err := identities(r.dir, r.server.url(""))
	if err != nil {
		return fmt.Errorf("%w\nIf the file is damaged, start without the old data: %s", err, r.freshCommand())
	}
	if err := pki.WriteKubeconfig(kubeconfig, admin); err != nil {
		return err
	}
	if err := r.connect(admin); err != nil {
		return err
	}
	r.state = instance.State{
		PID: os.Getpid(), Kubeconfig: kubeconfig, Server: r.server.url(""),
		Version: version.Get().GitVersion, Started: r.start.Truncate(time.Second),
	}
	return r.dir.WriteState(r.state)
}

// takeData deletes old data, or checks that this version can use it.
func (r *running) takeData() error {
	if !r.Fresh {
		r.say("data     %s", r.dir.Path)
		return r.checkVersion()
	}
	kept, err := r.dir.Clear()
	if err != nil {
		return fmt.Errorf("delete old data: %w", err)
	}
	r.say("data     %s, old data deleted", r.dir.Path)
	if len(kept) > 0 {
		r.say("note: kept %s, which devcluster has not made", strings.Join(kept, ", "))
	}
	return r.checkVersion()
}

// checkVersion checks that the data was not written by a version of Kubernetes
// whose data this one may not read, and notes that this one writes it from now on.
func (r *running) checkVersion() error {
	content, err := os.ReadFile(r.dir.File(instance.VersionName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the version of the data: %w", err)
	}
	this, before := version.Get().GitVersion, strings.TrimSpace(string(content))
	if before != "" && !canRead(this, before) {
		return fmt.Errorf("the data in %s was written by Kubernetes %s, and this is %s: "+
			"Kubernetes reads data of the same minor version and of the one before; "+
			"use the devcluster of that version, choose another directory with --data, or start without the old data: %s",
			r.dir.Path, before, this, r.freshCommand())
	}
	if before != "" && before != this {
		r.say("note: the data was written by Kubernetes %s; this is %s", before, this)
	}
	return os.WriteFile(r.dir.File(instance.VersionName), []byte(this+"\n"), 0o600)
}

// canRead reports whether a version of Kubernetes supports data of another one:
// that of the same minor version, and of the one before. A version that cannot be
// parsed is none that devcluster wrote, so the data is not trusted.
func canRead(this, data string) bool {
	if this == data {
		return true
	}
	ours, err := utilversion.ParseSemantic(this)
	if err != nil {
		return false
	}
	theirs, err := utilversion.ParseSemantic(data)
	if err != nil || ours.Major() != theirs.Major() {
		return false
	}
	return ours.Minor() == theirs.Minor() || ours.Minor() == theirs.Minor()+1
}

// freshCommand is a command line to paste that starts without the old data.
func (r *running) freshCommand() string {
	return "devcluster up --fresh --data " + shell.Quote(r.dir.Path)
}

func (r *running) connect(admin []byte) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(admin)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 1000, 1000
	if r.http, err = rest.HTTPClientFor(config); err != nil {
		return err
	}
	r.client, err = kubernetes.NewForConfigAndClient(config, r.http)
	return err
}

func (r *running) kubeconfigFile() (string, error) {
	if r.Kubeconfig == "" {
		return r.dir.File(kubeconfigName), nil
	}
	file, err := instance.At(r.Kubeconfig) // made absolute by the same rule
	if err != nil {
		return "", err
	}
	return file.Path, pki.CheckKubeconfigFile(file.Path)
}

func (r *running) reservePorts() error {
	var note string
	var err error
	if r.server, note, err = reserveServerPort(r.dir); err != nil {
		return err
	}
	if note != "" {
		r.say("note: %s", note)
	}
	if r.managerPort, err = reservePort(0); err != nil {
		return err
	}
	r.schedulerPort, err = reservePort(0)
	return err
}

// stop ends the components in reverse order, etcd last.
func (r *running) stop() error {
	if r.etcd != nil {
		r.say("stopping")
	}
	if r.http != nil {
		// A server takes a second to part from an open connection.
		utilnet.CloseIdleConnectionsFor(r.http.Transport)
	}
	var problems []error
	if err := r.group.Stop(controllersGrace, r.controllers...); err != nil {
		problems = append(problems, err)
	}
	if r.apiServer != nil {
		problems = append(problems, r.group.Stop(apiServerGrace, r.apiServer))
	}
	if r.etcd != nil {
		problems = append(problems, r.group.Stop(etcdGrace, r.etcd))
		r.say("stopped; the data stays in %s", r.dir.Path)
	}
	// A component that had to be killed is worth a line, but no failure: the
	// cluster is down, which is what was asked for.
	if err := errors.Join(problems...); err != nil {
		r.say("note: %v", err)
	}
	return errors.Join(r.group.Close(), r.dir.RemoveState())
}

// say writes a line for the user. That nobody reads it any more is no reason to
// end.
func (r *running) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Progress, format+"\n", args...)
}
