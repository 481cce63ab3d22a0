package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/einmal-operators/einmal/devcluster/internal/disk"
	"github.com/einmal-operators/einmal/devcluster/internal/supervise"
)

const (
	// startTimeout is the timeout for the start of containerd. It allows for very slow machines.
	startTimeout = 2 * time.Minute
	pollInterval = 25 * time.Millisecond
	stopGrace    = 2 * time.Second

	// dnsListen is where the DNS server listens.
	dnsListen = Address + ":53"
)

// manager runs the programs of a node.
type manager struct {
	layout                         Layout
	group                          *supervise.Group
	containerd, kubelet, kubeProxy *supervise.Process
	dns, volumes                   *supervise.Process
}

// manage runs a node until SIGTERM.
func manage(l Layout, apiServer string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	group, err := supervise.NewGroup(nil)
	if err != nil {
		return err
	}
	m := &manager{layout: l, group: group}
	serving, end := context.WithCancel(context.Background())
	defer end()
	err = m.start(ctx, serving, apiServer)
	if err == nil {
		select {
		case <-ctx.Done():
		case p := <-group.Failed():
			err = fmt.Errorf("%s exited unexpectedly (%s); see its log %s", p.Name, p.Reason(), p.LogFile)
		}
	}
	if ctx.Err() != nil {
		err = nil // Stopped on request.
	}
	return errors.Join(err, m.stop())
}

// start starts everything. The proxies serve until the context of the second argument ends.
func (m *manager) start(ctx, serving context.Context, apiServer string) error {
	if err := serveNode(serving, apiServer); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	m.dns, err = m.launch("dns", supervise.Spec{Program: self, Args: []string{
		"component", "dns", filepath.Join(m.layout.Pki, "dns.kubeconfig"), dnsListen, dnsSocket,
	}})
	if err != nil {
		return err
	}
	m.containerd, err = m.launch("containerd", supervise.Spec{
		Program: "containerd", Args: []string{"--config", m.layout.config("containerd.toml")}, Foreign: true,
	})
	if err != nil {
		return err
	}
	if err := m.awaitAnswer(ctx, m.containerd, containerdAnswers); err != nil {
		return err
	}
	if err := importPause(ctx); err != nil {
		return err
	}
	if err := m.awaitAnswer(ctx, m.dns, dnsAnswers); err != nil {
		return err
	}
	if err := m.startVolumes(self); err != nil {
		return err
	}
	m.kubelet, err = m.launch("kubelet", supervise.Spec{Program: self, Args: []string{
		"component", "kubelet", "--config=" + m.layout.config("kubelet.yaml"), "--kubeconfig=" + filepath.Join(m.layout.Pki, "kubelet.kubeconfig"),
		"--hostname-override=" + Name, "--node-ip=" + Address,
	}})
	if err != nil {
		return err
	}
	m.kubeProxy, err = m.launch("kube-proxy", supervise.Spec{Program: self, Args: []string{
		"component", "kube-proxy", "--config=" + m.layout.config("kube-proxy.yaml"),
	}})
	return err
}

// startVolumes mounts the volumes of earlier starts, and starts their component. A volume that cannot be mounted is logged. Its Pods wait, because its
// directory for data does not exist.
func (m *manager) startVolumes(self string) error {
	if err := m.disks().MountAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	var err error
	m.volumes, err = m.launch("volumes", supervise.Spec{Program: self, Args: []string{
		"component", "volumes", filepath.Join(m.layout.Pki, "volumes.kubeconfig"), m.layout.Volumes(),
	}})
	return err
}

func (m *manager) disks() disk.Folder { return disk.Folder(m.layout.Volumes()) }

func (m *manager) launch(name string, spec supervise.Spec) (*supervise.Process, error) {
	spec.Name, spec.Dir, spec.LogFile = name, m.layout.Data, filepath.Join(m.layout.Data, "logs", name+".log")
	return m.group.Start(spec)
}

// awaitAnswer waits until a check of a program succeeds.
func (m *manager) awaitAnswer(ctx context.Context, p *supervise.Process, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("start %s: not ready after %s: %w; see its log %s", p.Name, startTimeout, err, p.LogFile)
		case failed := <-m.group.Failed():
			return fmt.Errorf("start %s: %s exited (%s); see its log %s", p.Name, failed.Name, failed.Reason(), failed.LogFile)
		case <-ticker.C:
		}
	}
}

func containerdAnswers(ctx context.Context) error {
	out, err := ctr(ctx, nil, "version")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// dnsAnswers connects to the DNS server, which listens when it has read the Services.
func dnsAnswers(ctx context.Context) error {
	conn, err := dialing("tcp", dnsListen)(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// stop ends the kubelet first, which would start the containers again. Containers that stop can still look up names.
func (m *manager) stop() error {
	var err error
	end := func(p *supervise.Process) {
		if p != nil {
			err = errors.Join(err, m.group.Stop(stopGrace, p))
		}
	}
	end(m.kubelet)
	end(m.kubeProxy)
	if m.kubelet != nil {
		err = errors.Join(err, stopContainers())
	}
	end(m.volumes)
	end(m.dns)
	end(m.containerd)
	return errors.Join(err, m.disks().UnmountAll(), m.group.Close())
}

// serveNode joins the node's network with the machine's. The data directory is the working directory.
func serveNode(ctx context.Context, apiServer string) error {
	_, port, err := net.SplitHostPort(apiServer)
	if err != nil {
		return err
	}
	dir, err := os.Open(".")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = dir.Close() })
	toServer := forwarding(dialing("unix", inDir(dir, apiSocket)))
	// The kubeconfigs name the first address, and the endpoint of the Service kubernetes is the second.
	for _, address := range []string{apiServer, net.JoinHostPort(Address, port)} {
		l, err := net.Listen("tcp", address) //nolint:noctx // It returns at once.
		if err != nil {
			return err
		}
		go serve(ctx, l, toServer)
	}
	l, err := listenIn(dir, nodeSocket)
	if err != nil {
		return err
	}
	go serve(ctx, l, connecting(func(address string) dialer { return dialing("tcp", address) }))
	return nil
}

// ctr runs containerd's own client and returns what it printed.
func ctr(ctx context.Context, input []byte, args ...string) (string, error) {
	return ctrAt(ctx, containerdSocket, input, args...)
}
