package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

const (
	// startTimeout is what a control plane or an operator may take to start on a busy machine.
	startTimeout = 3 * time.Minute
	// deadline is how long a test waits for the operator to do something.
	deadline = 2 * time.Minute
)

// cluster is a real control plane, and a client of it with a user's rights: the tests are the users.
type cluster struct {
	client.Client
	config *rest.Config
}

// startCluster starts a control plane of its own for the test and applies the operator's CRD and RBAC.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	ctrllog.SetLogger(logr.Discard()) // The client would complain that nobody listens.
	config, err := clientcmd.BuildConfigFromFlags("", devcluster(t))
	if err != nil {
		t.Fatal(err)
	}
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1.AddToScheme} {
		if err := add(types); err != nil {
			t.Fatal(err)
		}
	}
	user, err := client.New(config, client.Options{Scheme: types})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{Client: user, config: config}
	c.applyFolder(t, "config/crd")
	c.applyFolder(t, "config/rbac")
	return c
}

// devcluster runs the control plane until the test ends and returns the path of its kubeconfig.
func devcluster(t *testing.T) string {
	t.Helper()
	program := os.Getenv("EINMAL_DEVCLUSTER")
	if program == "" {
		program = filepath.FromSlash("../../bin/devcluster")
	}
	// The control plane ends with the test, also when the test is killed: then nobody holds the pipe any more.
	lifeline, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "up", "--data", t.TempDir(), "--exit-with-fd", "3") //nolint:noctx // it is stopped in order
	command.ExtraFiles = []*os.File{lifeline}
	ready := make(chan string, 1)
	command.Stdout = &lines{each: func(line string) {
		if path, ok := strings.CutPrefix(line, "export KUBECONFIG="); ok {
			ready <- strings.Trim(path, `"'`)
		}
	}}
	said := &bytes.Buffer{}
	command.Stderr = said
	if err := command.Start(); err != nil {
		t.Fatalf("starting the control plane (make build builds it): %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = errors.Join(hold.Close(), lifeline.Close())
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the control plane ended with %v\n%s", err, said)
			}
		case <-time.After(startTimeout):
			_ = command.Process.Kill()
		}
	})
	select {
	case path := <-ready:
		return path
	case err := <-ended:
		ended <- err
		t.Fatalf("the control plane ended early: %v\n%s", err, said)
	case <-time.After(startTimeout):
		t.Fatal("the control plane is not ready in time")
	}
	return ""
}

// lines is a writer that hands on whole lines.
type lines struct {
	each    func(string)
	partial []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.partial = append(l.partial, p...)
	for {
		line, after, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.each(string(line))
		l.partial = after
	}
}

// applyFolder applies every manifest of a folder, as kubectl apply does.
func (c *cluster) applyFolder(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests in %s: %v", folder, err)
	}
	for _, object := range manifests(t, files) {
		c.within(t, "apply "+object.GetKind()+" "+object.GetName(), func(ctx context.Context) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership)
		})
	}
}

func manifests(t *testing.T, files []string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(file), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := documents.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			objects = append(objects, object)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return objects
}

// within repeats an attempt until it succeeds, and fails the test with the last error if it does not in time.
func (c *cluster) within(t *testing.T, what string, attempt func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		err := attempt(ctx)
		if err == nil {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, deadline, err)
		}
	}
}

// operatorKubeconfig writes a kubeconfig with a token of the operator's own ServiceAccount.
func (c *cluster) operatorKubeconfig(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "volumeclaim-system", Name: "volumeclaim"}}
	token := &authenticationv1.TokenRequest{}
	c.within(t, "token of the operator", func(ctx context.Context) error {
		return c.SubResource("token").Create(ctx, account, token)
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{
		Server: c.config.Host, CertificateAuthorityData: c.config.CAData, CertificateAuthority: c.config.CAFile,
	}
	config.AuthInfos["operator"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "operator"}
	config.CurrentContext = "test"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a running operator.
type process struct {
	command *exec.Cmd
	ended   chan error
	crashed bool

	mu  sync.Mutex
	log strings.Builder
}

// buildOperator builds the operator in a folder of this module and returns the path of its program.
func buildOperator(t *testing.T, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "volumeclaim")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", program, folder).CombinedOutput(); err != nil {
		t.Fatalf("building the operator: %v\n%s", err, output)
	}
	return program
}

// startOperator runs the operator with the rights of its own account until the test ends or it is stopped.
func (c *cluster) startOperator(t *testing.T, program, kubeconfig string) *process {
	t.Helper()
	p := &process{ended: make(chan error, 1)}
	p.command = exec.Command(program, "run", "--health-probe-bind-address", "0", "--metrics-bind-address", "0") //nolint:noctx // it is stopped in order
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	p.command.Stderr = &lines{each: func(line string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		fmt.Fprintln(&p.log, line)
	}}
	p.command.Stdout = p.command.Stderr
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.command.Wait() }()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("the operator's log:\n%s", p.said())
		}
	})
	return p
}

// said is what the operator has logged so far.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// crash ends the operator as a power failure does.
func (p *process) crash() {
	p.crashed = true
	_ = p.command.Process.Kill()
	p.ended <- <-p.ended
}

// stop ends the operator as a cluster does, and expects it to go in order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		p.ended <- err
		if err != nil && !p.crashed {
			t.Errorf("the operator ended with %v", err)
		}
	case <-time.After(deadline):
		_ = p.command.Process.Kill()
		t.Error("the operator did not stop")
	}
}
