// Package cluster starts a control plane for the benchmark, and asks its API server.
package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/einmal-operators/einmal/bench/gadget"
)

const (
	startTimeout = 2 * time.Minute
	pause        = 100 * time.Millisecond
)

// Cluster is a running control plane.
type Cluster struct {
	// Kubeconfig is the path of a file with all rights.
	Kubeconfig string
	// API sends requests to any path of the API server, as often as it is asked to.
	API *rest.RESTClient

	ended chan struct{}
	hold  *os.File
}

// Start starts the program devcluster with its data in a folder, and waits until the kinds are served. Stop must be called.
func Start(ctx context.Context, program, folder string, kinds ...Kind) (*Cluster, error) {
	c := &Cluster{ended: make(chan struct{})}
	if err := c.up(ctx, program, folder); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, kinds); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Stop stops the control plane and waits until it has ended.
func (c *Cluster) Stop() {
	_ = c.hold.Close()
	<-c.ended
}

func (c *Cluster) up(ctx context.Context, program, folder string) error {
	lifeline, hold, err := os.Pipe() // The control plane ends when it is closed, also when this process is killed.
	if err != nil {
		return err
	}
	c.hold = hold
	command := exec.Command(program, "up", "--data", folder, "--fresh", "--exit-with-fd", "3") //nolint:noctx,gosec // It ends with the pipe; the user names the program.
	command.ExtraFiles = []*os.File{lifeline}
	said := &bytes.Buffer{}
	command.Stderr = said
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	_ = lifeline.Close()
	ready := make(chan string, 1)
	go func() {
		defer close(c.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if path, announced := strings.CutPrefix(lines.Text(), "export KUBECONFIG="); announced {
				ready <- strings.Trim(path, `"'`)
			}
		}
		_ = command.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case c.Kubeconfig = <-ready:
		return nil
	case <-c.ended:
		return fmt.Errorf("the control plane ended early: %s", said)
	case <-ctx.Done():
		c.Stop()
		return fmt.Errorf("the control plane is not ready: %w", context.Cause(ctx))
	}
}

// prepare defines the kinds.
func (c *Cluster) prepare(ctx context.Context, kinds []Kind) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.APIPath, config.GroupVersion = -1, "/apis", &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	if c.API, err = rest.RESTClientFor(config); err != nil {
		return err
	}
	for _, kind := range kinds {
		body, err := json.Marshal(definition(kind))
		if err != nil {
			return err
		}
		if err := c.API.Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").Body(body).Do(ctx).Error(); err != nil {
			return fmt.Errorf("define %s: %w", kind.Resource(), err)
		}
		if err := c.await(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a kind is served.
func (c *Cluster) await(ctx context.Context, kind Kind) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := c.API.Get().AbsPath(kind.Path("default")).Do(ctx).Error()
		if err == nil || !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is not served", kind.Resource()), context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// Kind is a kind that a subject handles.
type Kind struct {
	Name string
	// Recorded: the status has a field for the records of Einmal.
	Recorded bool
}

// Resource returns the name of the kind in the paths of the API.
func (k Kind) Resource() string { return gadget.Resource(k.Name) }

// Path returns the path of the kind's objects in a namespace.
func (k Kind) Path(namespace string) string {
	return "/apis/" + gadget.Group + "/" + gadget.Version + "/namespaces/" + namespace + "/" + k.Resource()
}

// definition returns the CustomResourceDefinition of a kind.
func definition(kind Kind) map[string]any {
	type fields = map[string]any
	text, number := fields{"type": "string"}, fields{"type": "integer"}
	status := fields{"size": number, "phase": text}
	if kind.Recorded {
		status["records"] = fields{"type": "object", "additionalProperties": text}
	}
	return fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": fields{"name": kind.Resource() + "." + gadget.Group},
		"spec": fields{
			"group": gadget.Group, "scope": "Namespaced",
			"names": fields{"kind": kind.Name, "plural": kind.Resource()},
			"versions": []fields{{
				"name": gadget.Version, "served": true, "storage": true, "subresources": fields{"status": fields{}},
				"schema": fields{"openAPIV3Schema": fields{"type": "object", "properties": fields{
					"spec":   fields{"type": "object", "properties": fields{"size": number, "text": text}},
					"status": fields{"type": "object", "properties": status},
				}}},
			}},
		},
	}
}
