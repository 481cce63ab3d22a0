package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/node"
	"github.com/einmal-operators/einmal/devcluster/internal/supervise"
)

const (
	pollInterval = 25 * time.Millisecond
	// startTimeout is the timeout for the start of a component. It allows for
	// very slow machines.
	startTimeout = 2 * time.Minute
	logTailLines = 8
	logLineLimit = 240
)

// startControlPlane starts etcd and then the API server and waits until both are
// ready. If the API server started before etcd is ready, its backoff would take
// longer than the start of etcd.
func (r *running) startControlPlane(ctx context.Context) error {
	var err error
	if r.etcd, err = r.launch(etcd, "", r.dir.File("etcd")); err != nil {
		return err
	}
	if err := r.await(ctx, etcd, r.etcdServes); err != nil {
		return err
	}
	r.apiServer, err = r.launch(apiServer, r.server.url("/readyz"), r.apiServerArgs()...)
	if err != nil {
		return err
	}
	return r.await(ctx, apiServer, func(ctx context.Context) error {
		return r.healthy(ctx, r.server.url("/readyz"))
	})
}

// startControllers starts the components that use the API server and waits until
// they work.
func (r *running) startControllers(ctx context.Context) error {
	for _, c := range []struct {
		name, health string
		args         []string
	}{
		{controllerManager, r.managerPort.url("/healthz"), controllerManagerArgs(r.dir, r.managerPort)},
		{scheduler, r.schedulerPort.url("/readyz"), schedulerArgs(r.dir, r.schedulerPort)},
		{nodes, "", []string{r.kubeconfigOf(nodes)}},
		{volumes, "", []string{r.kubeconfigOf(volumes), ""}},
	} {
		// A real node has its own.
		if r.RealNode && (c.name == nodes || c.name == volumes) {
			continue
		}
		p, err := r.launch(c.name, c.health, c.args...)
		if err != nil {
			return err
		}
		r.controllers = append(r.controllers, p)
	}
	if err := bootstrap(ctx, r.client, r.Options); err != nil {
		return err
	}
	return r.awaitControllers(ctx)
}

func (r *running) awaitControllers(ctx context.Context) error {
	for _, step := range []struct {
		name  string
		check func(context.Context) error
	}{
		{scheduler, func(ctx context.Context) error { return r.healthy(ctx, r.schedulerPort.url("/readyz")) }},
		{controllerManager, r.managerWorks},
		{nodes, func(ctx context.Context) error { return node.AllReady(ctx, r.client) }},
	} {
		if step.name == nodes && r.RealNode {
			continue
		}
		if err := r.await(ctx, step.name, step.check); err != nil {
			return err
		}
	}
	return nil
}

// managerWorks checks the health of the controller manager and that it has created
// the default ServiceAccount, which Pods need.
func (r *running) managerWorks(ctx context.Context) error {
	_, err := r.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return errors.Join(err, r.healthy(ctx, r.managerPort.url("/healthz")))
}

// launch starts a component and records it in the state.
func (r *running) launch(name, health string, args ...string) (*supervise.Process, error) {
	return r.launchIn(nil, name, health, args...)
}

// launchIn is launch with attributes of the process, such as its namespaces.
func (r *running) launchIn(attributes *syscall.SysProcAttr, name, health string, args ...string) (*supervise.Process, error) {
	p, err := r.group.Start(supervise.Spec{
		Name:       name,
		Program:    r.Program,
		Args:       append([]string{"component", name}, args...),
		Dir:        r.dir.Path,
		LogFile:    r.dir.File(logDir, name+".log"),
		Attributes: attributes,
	})
	if err != nil {
		return nil, err
	}
	r.state.Components = append(r.state.Components, instance.Component{
		Name: name, PID: p.PID(), Log: p.LogFile, Health: health,
	})
	return p, r.dir.WriteState(r.state)
}

// await repeats check until it succeeds. It returns an error if ctx is done, a
// component fails, or startTimeout has passed.
func (r *running) await(ctx context.Context, name string, check func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(limited)
		if err == nil {
			r.say("%-24s %4.1f s", name, time.Since(r.start).Seconds())
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p := <-r.group.Failed():
			return r.failure(p)
		case <-limited.Done():
			return fmt.Errorf("start %s: not ready after %s: %w; see its log %s",
				name, startTimeout, err, r.dir.File(logDir, name+".log"))
		case <-ticker.C:
		}
	}
}

// failure returns an error for a component that exited unexpectedly, with its panic
// message or the end of its log.
func (r *running) failure(p *supervise.Process) error {
	text := fmt.Sprintf("%s exited unexpectedly (%s)", p.Name, p.Reason())
	r.say("%s", text)
	log, err := supervise.ReadLog(p.LogFile, logTailLines)
	full := r.dir.CheckSpace()
	switch {
	case err != nil:
		return errors.Join(componentError(text), err, full)
	case log.Panic != "":
		text = fmt.Sprintf("%s: panic: %s; see its log %s", text, shorten(log.Panic), p.LogFile)
	default:
		text = fmt.Sprintf("%s; the end of %s:", text, p.LogFile)
		for line := range strings.Lines(string(log.Tail)) {
			text += "\n  " + shorten(strings.TrimRight(line, "\n"))
		}
	}
	if p.Name == etcd && r.apiServer == nil && full == nil {
		text += "\nremedy: if the data is damaged, start without it: " + r.freshCommand()
	}
	return errors.Join(componentError(text), full)
}

func shorten(line string) string {
	if len(line) <= logLineLimit {
		return line
	}
	return strings.ToValidUTF8(line[:logLineLimit], "") + " …"
}

func (r *running) kubeconfigOf(name string) string {
	return r.dir.File(pkiDir, name+".kubeconfig")
}

// etcdServes checks for the file that the etcd component creates when it is ready.
// prepare removes the file of a previous run.
func (r *running) etcdServes(context.Context) error {
	_, err := os.Stat(r.dir.File(etcdReady))
	return err
}

func (r *running) healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := r.http.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // only the status code matters
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, response.Status)
	}
	return nil
}
