// Package cluster runs a development cluster: it prepares the data directory,
// starts the components in order, waits until the cluster is ready, and stops the
// components in reverse order.
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
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
	"github.com/einmal-operators/einmal/devcluster/internal/shell"
	"github.com/einmal-operators/einmal/devcluster/internal/supervise"
)

const (
	kubeconfigName = "kubeconfig"
	logDir         = "logs"

	// The components are stopped in three steps. Together with the kill after a
	// step that takes too long, they take less than five seconds.
	controllersGrace = 1200 * time.Millisecond
	apiServerGrace   = 2000 * time.Millisecond
	etcdGrace        = 1300 * time.Millisecond

	// noticeTime is how long after another error the exit of a component may be
	// reported as its cause.
	noticeTime = 300 * time.Millisecond
)

// componentError reports that a component exited unexpectedly.
type componentError string

func (e componentError) Error() string { return string(e) }

// Options configure a cluster.
type Options struct {
	// Program is the path of the devcluster binary, which contains the components.
	Program string
	// Data is the data directory.
	Data string
	// Fresh deletes the data of earlier runs first.
	Fresh bool
	// Kubeconfig is the file to write the user's kubeconfig to. The default is
	// "kubeconfig" in the data directory.
	Kubeconfig string
	// Nodes is the number of simulated nodes.
	Nodes int
	// RealNode says that the cluster has one node that runs containers. Then Nodes is 0.
	RealNode bool
	// Out receives the line to copy into a shell, Progress everything else.
	Out, Progress io.Writer
}

// running is a cluster that is starting, running or stopping.
type running struct {
	Options
	dir   instance.Dir
	group *supervise.Group
	state instance.State
	start time.Time

	server, managerPort, schedulerPort port

	etcd, apiServer, node *supervise.Process
	// leaveNode ends the connection between the networks of the machine and the node.
	leaveNode   context.CancelFunc
	controllers []*supervise.Process

	// client and http act as the administrator.
	client kubernetes.Interface
	http   *http.Client
}

// Up runs a cluster until ctx is done, then stops it and returns nil. It returns an
// error if the cluster cannot start or a component fails.
func Up(ctx context.Context, o Options) error {
	r := &running{Options: o, start: time.Now(), leaveNode: func() {}}
	var err error
	if o.RealNode {
		if err := realnode.Missing(realnode.Problems()); err != nil {
			return err
		}
	}
	if r.dir, err = instance.At(o.Data); err != nil {
		return err
	}
	file, err := r.kubeconfigFile() // Check it before creating or deleting files.
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
	defer func() { _ = lock.Close() }() // closing also releases the lock
	if stale != nil {
		r.say("note: the previous instance (process %d) did not exit cleanly; taking over its data", stale.PID)
	}
	if r.group, err = supervise.NewGroup(lock); err != nil {
		return err
	}
	err = r.run(ctx, file)
	switch {
	case ctx.Err() != nil:
		err = nil // stopped on request; errors of interrupted steps do not matter
	case err != nil:
		err = r.rootCause(err)
	}
	err = errors.Join(err, r.stop())
	r.leaveNode()
	return err
}

// rootCause returns the failure of a component if there is one. In that case err,
// for example a refused connection, is only a consequence.
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
	if err := r.prepareNode(); err != nil { //nolint:contextcheck // Its connection ends after the components, which end after the context.
		return err
	}
	if err := r.startControlPlane(ctx); err != nil {
		return err
	}
	if err := r.startControllers(ctx); err != nil {
		return err
	}
	if err := r.startNode(ctx); err != nil {
		return err
	}
	r.state.Ready = true
	if err := r.dir.WriteState(r.state); err != nil {
		return err
	}
	r.say("ready after %.1f s; Ctrl-C stops the cluster and keeps its data", time.Since(r.start).Seconds())
	// Ignore the error: the cluster keeps running if the reader exits.
	_, _ = fmt.Fprintf(r.Out, "export KUBECONFIG=%s\n", shell.Quote(r.state.Kubeconfig))
	select {
	case <-ctx.Done():
		return nil
	case p := <-r.group.Failed():
		return r.failure(p)
	}
}

// prepare performs all steps before the first component starts. kubeconfig is the
// file to write the user's kubeconfig to.
func (r *running) prepare(kubeconfig string) error {
	if err := r.prepareData(); err != nil {
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
		return fmt.Errorf("%w\nremedy: if the file is damaged, start without the old data: %s", err, r.freshCommand())
	}
	if err := pki.WriteKubeconfig(kubeconfig, admin); err != nil {
		return err
	}
	if err := r.connect(admin); err != nil {
		return err
	}
	r.state = instance.State{
		PID: os.Getpid(), Kubeconfig: kubeconfig, Server: r.server.url(""),
		Version: version.Get().GitVersion, Started: r.start.Truncate(time.Second), RealNode: r.RealNode,
	}
	return r.dir.WriteState(r.state)
}

// prepareData deletes the old data, or checks that this version can read it.
func (r *running) prepareData() error {
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
		r.say("note: kept %s, not created by devcluster", strings.Join(kept, ", "))
	}
	return r.checkVersion()
}

// checkVersion returns an error if this version of Kubernetes cannot read the data.
// Otherwise it records this version as the one that wrote the data.
func (r *running) checkVersion() error {
	content, err := os.ReadFile(r.dir.File(instance.VersionName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the version of the data: %w", err)
	}
	this, before := version.Get().GitVersion, strings.TrimSpace(string(content))
	if before != "" && !canRead(this, before) {
		return fmt.Errorf("read the data in %s: it was written by Kubernetes %s, but Kubernetes %s reads "+
			"only data of the same and of the previous minor version\n"+
			"remedy: use the devcluster of that version, choose another directory with --data,\n"+
			"        or start without the old data: %s",
			r.dir.Path, before, this, r.freshCommand())
	}
	if before != "" && before != this {
		r.say("note: the data was written by Kubernetes %s; this is Kubernetes %s", before, this)
	}
	return os.WriteFile(r.dir.File(instance.VersionName), []byte(this+"\n"), 0o600)
}

// canRead reports whether a version of Kubernetes can read the data of another one:
// it must have the same or the previous minor version. Versions that cannot be
// parsed were not written by devcluster and are rejected.
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

// freshCommand returns a command line that starts without the old data.
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
	file, err := instance.At(r.Kubeconfig) // makes the path absolute
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

// stop stops the components in reverse order, etcd last.
func (r *running) stop() error {
	if r.etcd != nil {
		r.say("stopping")
	}
	if r.http != nil {
		// An open connection would delay the shutdown of a server by a second.
		utilnet.CloseIdleConnectionsFor(r.http.Transport)
	}
	problems := []error{r.stopNode()}
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
	// A killed component is reported, but it is not an error: the cluster has
	// stopped as requested.
	if err := errors.Join(problems...); err != nil {
		r.say("note: %v", err)
	}
	return errors.Join(r.group.Close(), r.dir.RemoveState())
}

// say writes a line for the user. It ignores errors, so that the cluster keeps
// running if the reader exits.
func (r *running) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Progress, format+"\n", args...)
}
