package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/devcluster/internal/disk"
	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/node"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
)

// nodeStatus is the part of the status that is about nodes.
type nodeStatus struct {
	// Kind is "simulated" or "real".
	Kind string `json:"kind"`
	// NotReady is why the real node is not ready for Pods; "" if it is.
	NotReady string `json:"notReady,omitempty"`
	// Volumes says whether new volumes of the real node have a size.
	Volumes string `json:"volumes,omitempty"`
	// Images are the names of the images that the real node has.
	Images []string `json:"images,omitempty"`
}

// missingStatus is something that this machine lacks for a real node.
type missingStatus struct {
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// readMissing returns what this machine lacks for a real node.
func readMissing() []missingStatus {
	var missing []missingStatus
	for _, p := range realnode.Problems() {
		missing = append(missing, missingStatus(p))
	}
	return missing
}

// readNode returns the status of the nodes of a running cluster.
func readNode(ctx context.Context, config *rest.Config, client *http.Client, state instance.State) (*nodeStatus, error) {
	if !state.RealNode {
		return &nodeStatus{Kind: simulatedNode}, nil
	}
	s := &nodeStatus{Kind: realNode, Volumes: "file systems of their size"}
	if err := disk.Problem(); err != nil {
		s.Volumes = disk.Unlimited(err)
	}
	pid, found := realNodeOf(state)
	if !found || !state.Ready {
		s.NotReady = "it is starting"
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if err := nodeReady(ctx, config, client); err != nil {
		s.NotReady = err.Error()
	}
	var err error
	s.Images, err = realnode.Images(ctx, pid)
	return s, err
}

// nodeReady returns an error if the real node is not ready for Pods.
func nodeReady(ctx context.Context, config *rest.Config, client *http.Client) error {
	api, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	found, err := api.CoreV1().Nodes().Get(ctx, realnode.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return node.Ready(found)
}

// realNodeOf returns the process ID of the real node of a cluster, and whether it has been started.
func realNodeOf(state instance.State) (pid int, found bool) {
	for _, c := range state.Components {
		if c.Name == realnode.Component {
			return c.PID, true
		}
	}
	return 0, false
}

// printNode prints the nodes and what the machine lacks for a real node.
func printNode(w io.Writer, s status) {
	if s.Node != nil {
		text := s.Node.Kind
		switch {
		case s.Node.NotReady != "":
			text += ", NOT READY: " + s.Node.NotReady
		case s.Node.Kind == realNode:
			text += ", ready"
		}
		fmt.Fprintf(w, "node\t%s\n", text)
		if s.Node.Volumes != "" {
			fmt.Fprintf(w, "volumes\t%s\n", s.Node.Volumes)
		}
		for _, name := range s.Node.Images {
			fmt.Fprintf(w, "image\t%s\n", name)
		}
	}
	printed := map[string]bool{"": true}
	for _, m := range s.Missing {
		fmt.Fprintf(w, "real node\tnot possible: %s\n", m.Text)
	}
	for _, m := range s.Missing {
		if !printed[m.Remedy] {
			printed[m.Remedy] = true
			fmt.Fprintf(w, "remedy\t%s\n", m.Remedy)
		}
	}
}
