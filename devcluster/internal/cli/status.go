package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
)

const (
	// codeNotRunning is the exit code of "status" if no cluster is running.
	codeNotRunning = 3
	healthTimeout  = 2 * time.Second
)

// status is the output of "devcluster status --output json".
type status struct {
	Running    bool              `json:"running"`
	Ready      bool              `json:"ready"`
	PID        int               `json:"pid"`
	Data       string            `json:"data"`
	Kubeconfig string            `json:"kubeconfig"`
	Server     string            `json:"server"`
	Version    string            `json:"version"`
	Started    *time.Time        `json:"started,omitempty"`
	Components []componentStatus `json:"components,omitempty"`
	Node       *nodeStatus       `json:"node,omitempty"`
	// Missing is what this machine lacks for a real node.
	Missing []missingStatus `json:"missing,omitempty"`
	// Problem is why the kubeconfig cannot be used although the cluster is running,
	// with the remedy, or why the node cannot be read. Usually it is empty.
	Problem string `json:"problem,omitempty"`
}

type componentStatus struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Healthy bool   `json:"healthy"`
	Log     string `json:"log"`
}

func newStatus() *cobra.Command {
	var data, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print whether a cluster is running, and its health",
		Long: `Status prints the process, server address, kubeconfig and component health of the
cluster that runs on the data directory, the kind of its nodes and the images of a
real node. It also prints what this machine lacks for a real node. The exit code is
0 if a cluster is running and 3 if not.`,
		Example: `  devcluster status
  devcluster status --output json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return wrongUsage(cmd, fmt.Errorf("flag --output: must be text or json, got %q", output))
			}
			if err := notEmpty(cmd, "data"); err != nil {
				return err
			}
			dir, err := instance.At(data)
			if err != nil {
				return err
			}
			s, err := readStatus(cmd.Context(), dir)
			if err != nil {
				return err
			}
			return s.print(cmd, output)
		},
	}
	addDataFlag(cmd, &data)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "output `FORMAT`: text or json")
	return cmd
}

// print prints the status in the format "text" or "json". It returns the exit code of
// a cluster that is not running as an error.
func (s status) print(cmd *cobra.Command, output string) error {
	write := printText
	if output == "json" {
		write = printJSON
	}
	err := write(cmd.OutOrStdout(), s)
	if s.Problem != "" {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "devcluster status:", s.Problem)
	}
	if err == nil && !s.Running {
		err = exitError(codeNotRunning)
	}
	return err
}

func readStatus(ctx context.Context, dir instance.Dir) (status, error) {
	s := status{Data: dir.Path, Missing: readMissing()}
	locked, err := dir.Locked()
	if err != nil || !locked {
		return s, err
	}
	s.Running = true
	state, err := dir.ReadState()
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil // it has just been started
	}
	if err != nil {
		return s, err
	}
	if state.RealNode {
		s.Missing = nil // It runs, also if this process has other rights, or does not find the programs.
	}
	s.Ready, s.PID = state.Ready, state.PID
	s.Kubeconfig, s.Server, s.Version = state.Kubeconfig, state.Server, state.Version
	s.Started = &state.Started
	config, err := readKubeconfig(state.Kubeconfig, state.Server)
	if err != nil {
		// The cluster runs regardless, and its own credentials are good enough for health checks.
		s.Problem = fmt.Sprintf("%v\nremedy: %s", err, rewriteKubeconfig(dir.Path))
		if config, err = readKubeconfig(dir.File("pki", "kube-scheduler.kubeconfig"), state.Server); err != nil {
			return s, err
		}
	}
	config.Timeout = healthTimeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return s, fmt.Errorf("create client: %w", err)
	}
	s.Components = make([]componentStatus, len(state.Components))
	var wg sync.WaitGroup
	for i, c := range state.Components {
		wg.Go(func() {
			s.Components[i] = componentStatus{
				Name: c.Name, PID: c.PID, Log: c.Log, Healthy: healthy(ctx, client, c),
			}
		})
	}
	wg.Wait()
	if s.Node, err = readNode(ctx, config, client, state); err != nil {
		s.Problem = strings.TrimPrefix(s.Problem+"\n"+err.Error(), "\n")
	}
	return s, nil
}

// healthy reports whether a component answers its health check. A component
// without one is healthy while its process exists.
func healthy(ctx context.Context, client *http.Client, c instance.Component) bool {
	if c.Health == "" {
		return syscall.Kill(c.PID, 0) == nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Health, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // only the status code matters
	return response.StatusCode == http.StatusOK
}

func printJSON(out io.Writer, s status) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

func printText(out io.Writer, s status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !s.Running {
		if _, err := fmt.Fprintf(out, "no cluster is running on %s\n", s.Data); err != nil {
			return err
		}
		printNode(w, s)
		return w.Flush()
	}
	state := "running"
	if !s.Ready {
		state = "starting"
	}
	fmt.Fprintf(w, "state\t%s\nprocess\t%d\nserver\t%s\nkubernetes\t%s\nkubeconfig\t%s\ndata\t%s\n",
		state, s.PID, s.Server, s.Version, s.Kubeconfig, s.Data)
	for _, c := range s.Components {
		health := "healthy"
		if !c.Healthy {
			health = "NOT HEALTHY, see " + c.Log
		}
		fmt.Fprintf(w, "%s\t%s\n", c.Name, health)
	}
	printNode(w, s)
	return w.Flush()
}
