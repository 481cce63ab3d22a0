package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/internal/testkit/transcript"
	"github.com/einmal-operators/einmal/test/fixture"
)

// helloSystem is the default namespace that hello rbac prints.
const helloSystem = "hello-example-com-system"

// helloTools runs the program of examples/hello against a real control plane.
type helloTools struct {
	*cluster.Cluster
	program string
	// account is a kubeconfig of the account that hello rbac prints.
	account string
	golden  *transcript.Transcript
}

// The verbs of an operator's program, as a user runs them. The parts share one control plane and build on each other.
func TestCommandsOfAnOperatorOnARealControlPlane(t *testing.T) {
	t.Parallel()
	h := &helloTools{Cluster: cluster.Start(t), program: filepath.Join(t.TempDir(), "hello")}
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", h.program, "../../examples/hello").CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, output)
	}
	h.golden = transcript.New(t, "Wrong and dangerous command lines of an operator's program", func(text string) string {
		text = strings.ReplaceAll(text, h.Config.Host, "https://SERVER")
		return regexp.MustCompile(`held by \S+_[-0-9a-f]{36}`).ReplaceAllString(text, "held by HOLDER")
	})
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"a wrong command line exits with 2", h.wrongCommandLines},
		{"what crds and rbac print can be applied to a fresh cluster", h.installs},
		{"run says why the API server cannot be used", h.diagnoses},
		{"run listens on loopback outside of a pod", h.listensOnLoopback},
		{"uninstall refuses while the operator runs", h.refusesUninstall},
		{"a replica with another state namespace is reported", h.reportsReplica},
		{"uninstall finds the Lease in the namespace default", h.findsLeaseInDefault},
		{"uninstall says what is left", h.saysWhatIsLeft},
	} {
		if !t.Run(part.name, part.run) {
			break
		}
	}
	h.golden.Compare(t, "testdata/commands/operator.txt")
}

// record runs a command line with a kubeconfig, in an empty home, and returns the exit code. The note says what is special.
func (h *helloTools) record(t *testing.T, note, kubeconfig string, args ...string) int {
	t.Helper()
	command := exec.CommandContext(t.Context(), h.program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir())
	return h.golden.Run(t, note, append([]string{"hello"}, args...), command)
}

func (h *helloTools) wrongCommandLines(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"rum"},
		{"run", "--colour"},
		{"run", "--log-format", "xml"},
		{"crds", "extra"},
		{"version", "extra"},
		{"rbac", "-name", "Bad Name"},
		{"rbac", "-state-namespace", "hello.example.com-system"},
		{"uninstall", "--namespace", "-prod"},
	} {
		if code := h.record(t, "", h.Kubeconfig, args...); code != 2 {
			t.Errorf("hello %s: exit code %d, want 2", strings.Join(args, " "), code)
		}
	}
	for _, args := range [][]string{{"crds", "-h"}, {"version", "-h"}, {"version"}, {"--version"}} {
		output, err := exec.CommandContext(t.Context(), h.program, args...).Output()
		if err != nil || !strings.Contains(string(output), "hello") || strings.Contains(string(output), "kind: CustomResource") {
			t.Errorf("hello %s: %v, printed\n%s", strings.Join(args, " "), err, output)
		}
	}
}

// installs pipes what the program prints to kubectl, and makes a kubeconfig of the account.
func (h *helloTools) installs(t *testing.T) {
	for _, verb := range []string{"crds", "rbac"} {
		output, err := exec.CommandContext(t.Context(), h.program, verb).Output()
		if err != nil {
			t.Fatalf("hello %s: %v", verb, err)
		}
		h.Kubectl(t, string(output), "apply", "-f", "-")
	}
	h.Kubectl(t, "", "wait", "--for=condition=Established", "crd", "--all")
	h.Kubectl(t, "apiVersion: example.com/v1\nkind: Hello\nmetadata: {name: world, namespace: default}\nspec: {name: World}\n", "apply", "-f", "-")
	account := h.kubeconfig(t, strings.TrimSpace(h.Kubectl(t, "", "create", "token", "hello.example.com", "--namespace", helloSystem)))
	h.account = filepath.Join(filepath.Dir(h.program), "account") // It outlasts this part of the test.
	if err := os.Rename(account, h.account); err != nil {
		t.Fatal(err)
	}
}

func (h *helloTools) kubeconfig(t *testing.T, token string) string {
	t.Helper()
	config := rest.AnonymousClientConfig(h.Config)
	config.BearerToken = token
	return cluster.KubeconfigOf(t, config)
}

// start starts the operator without ports.
func (h *helloTools) start(t *testing.T, kubeconfig string, args ...string) *process {
	t.Helper()
	args = append([]string{"run", "--kubeconfig", kubeconfig, "--health-probe-bind-address", "0", "--metrics-bind-address", "0"}, args...)
	return start(t, exec.Command(h.program, args...), &fixture.Journal{}) //nolint:noctx // It is ended by the test.
}

// logs waits until the log of a process has a line with all these attributes: see fixture.Log.Count.
func (p *process) logs(t *testing.T, attributes ...string) {
	t.Helper()
	cluster.Until(t, fmt.Sprintf("the log has %q", attributes), func() bool { return p.log.Count(attributes...) > 0 })
}

func (h *helloTools) diagnoses(t *testing.T) {
	refused := rest.AnonymousClientConfig(h.Config)
	refused.Host = "https://127.0.0.1:1"
	powerless := cluster.KubeconfigOf(t, h.Account(t, "powerless"))
	home := []string{"--state-namespace", helloSystem}
	for name, elected := range map[string][]string{"elected": home, "alone": append(home, "--leader-elect=false")} {
		t.Run(name, func(t *testing.T) {
			connects := h.start(t, cluster.KubeconfigOf(t, refused), elected...)
			stranger := h.start(t, h.kubeconfig(t, "nonsense"), elected...)
			unable := h.start(t, powerless, elected...)
			connects.logs(t, "msg~cannot connect to the API server", "error~connection refused", "remedy~--kubeconfig")
			stranger.logs(t, "msg~rejects the credentials (401 Unauthorized)", "remedy~renew the token")
			unable.logs(t, "msg~forbidden", `missingRule~resources: ["hellos"], verbs: ["list"]`, "scope=at the cluster scope",
				"user=system:serviceaccount:default:powerless", "remedy~the rbac command prints")
			for _, p := range []*process{connects, stranger, unable} {
				if log := p.log.String(); strings.Contains(log, "kind not served") || strings.Contains(log, "einmal.Resource[") {
					t.Errorf("the log misleads:\n%s", log)
				}
				p.stop(t)
			}
		})
	}
	h.record(t, "the kubeconfig does not have the context", h.account, "run", "--context", "production")
	h.Kubectl(t, "", "delete", "crd", "hellos.example.com")
	missing := h.start(t, h.account, append(home, "--leader-elect=false")...)
	missing.logs(t, "msg=kind not served, waiting for it", "remedy~the output of the command crds")
	missing.stop(t)
	h.installs(t)
}

// listensOnLoopback starts the operator with its default ports.
func (h *helloTools) listensOnLoopback(t *testing.T) {
	command := exec.Command(h.program, "run", "--kubeconfig", h.account, "--state-namespace", helloSystem) //nolint:noctx // It is ended by the test.
	running := start(t, command, &fixture.Journal{}, "KUBERNETES_SERVICE_HOST=")
	cluster.Until(t, "the operator serves or ends", func() bool {
		select {
		case <-running.ended:
			return true
		default:
			return running.log.Count("msg~watching, ") > 0
		}
	})
	select {
	case <-running.ended: // Another process of this machine has a port: the message names the address.
		if log := running.log.String(); !strings.Contains(log, "listen tcp 127.0.0.1:808") || !strings.Contains(log, "bind-address") {
			t.Errorf("the operator ended:\n%s", log)
		}
		return
	default:
	}
	addresses := listeners(t, command.Process.Pid)
	if want := []string{"0100007F:1F90", "0100007F:1F91"}; !slices.Equal(addresses, want) { // 127.0.0.1, ports 8080 and 8081
		t.Errorf("it listens at %v, want %v", addresses, want)
	}
	running.stop(t)
	inPod := exec.CommandContext(t.Context(), h.program, "run", "--help")
	inPod.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST=10.96.0.1")
	help, err := inPod.Output()
	if err != nil || !strings.Contains(string(help), `(default ":8080")`) || !strings.Contains(string(help), `(default ":8081")`) {
		t.Errorf("in a pod the help is: %v\n%s", err, help)
	}
}

// listeners returns the addresses at which a process listens, as /proc shows them.
func listeners(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	process := filepath.Join("/proc", strconv.Itoa(pid))
	descriptors, err := os.ReadDir(filepath.Join(process, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	sockets := map[string]bool{}
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(filepath.Join(process, "fd", descriptor.Name())); err == nil {
			sockets[target] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(filepath.Join(process, "net", table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if parts := strings.Fields(line); parts[3] == "0A" && sockets["socket:["+parts[9]+"]"] { // 0A is LISTEN.
				addresses = append(addresses, parts[1])
			}
		}
	}
	slices.Sort(addresses)
	return addresses
}

// holdsLease waits until the operator holds its Lease in a namespace: without leader election, the operator works before it does.
func (h *helloTools) holdsLease(t *testing.T, namespace string) {
	t.Helper()
	cluster.Until(t, "the Lease is held", func() bool {
		return h.Kubectl(t, "", "get", "lease", "hello.example.com", "--namespace", namespace, "--ignore-not-found", "-o", "jsonpath={.spec.holderIdentity}") != ""
	})
}

func (h *helloTools) refusesUninstall(t *testing.T) {
	for _, elect := range []string{"--leader-elect=true", "--leader-elect=false"} {
		running := h.start(t, h.account, "--state-namespace", helloSystem, elect)
		running.logs(t, "msg~watching, ")
		h.holdsLease(t, helloSystem)
		if code := h.record(t, "the operator runs with "+elect, h.Kubeconfig, "uninstall", "--state-namespace", helloSystem); code != 3 {
			t.Errorf("%s: exit code %d, want 3", elect, code)
		}
		if status := h.Kubectl(t, "", "get", "hello", "world", "-o", "jsonpath={.status.records}"); status == "" {
			t.Errorf("%s: uninstall has stripped the object", elect)
		}
		running.stop(t)
	}
}

func (h *helloTools) reportsReplica(t *testing.T) {
	first := h.start(t, h.account, "--state-namespace", helloSystem, "--leader-elect=false")
	first.logs(t, "msg~watching, ")
	h.holdsLease(t, helloSystem)
	elsewhere := h.start(t, h.Kubeconfig, "--state-namespace", "default")
	elsewhere.logs(t, "msg~another replica of this operator runs with another state namespace", "holder~_", "remedy~--state-namespace "+helloSystem)
	elsewhere.stop(t)
	nowhere := h.start(t, h.Kubeconfig, "--leader-elect=false")
	nowhere.logs(t, "msg~another replica of this operator runs with another state namespace", "holder~_", "remedy~--state-namespace "+helloSystem)
	nowhere.stop(t)
	first.stop(t)
	h.Kubectl(t, "", "delete", "lease,configmap", "hello.example.com", "--namespace", "default", "--ignore-not-found")
	without := h.start(t, cluster.KubeconfigOf(t, h.Account(t, "leaseless",
		rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"hellos", "hellos/status"}, Verbs: []string{"get", "list", "watch", "patch"}})),
		"--state-namespace", helloSystem, "--leader-elect=false")
	without.logs(t, "msg~cannot hold the Lease")
	without.logs(t, "msg~watching, ")
	without.stop(t)
}

// findsLeaseInDefault runs the operator without a namespace of its own: it holds its Lease in the namespace default, where uninstall finds it,
// also if another namespace is given.
func (h *helloTools) findsLeaseInDefault(t *testing.T) {
	h.Kubectl(t, "", "delete", "lease,configmap", "hello.example.com", "--namespace", helloSystem, "--ignore-not-found")
	running := h.start(t, h.Kubeconfig, "--leader-elect=false")
	running.logs(t, "msg~watching, ")
	h.holdsLease(t, "default")
	if code := h.record(t, "the operator runs, and its Lease is in the namespace default", h.Kubeconfig, "uninstall"); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	h.Kubectl(t, staleLease, "apply", "-f", "-")
	if code := h.record(t, "the operator runs, and an expired Lease is in the given namespace", h.Kubeconfig,
		"uninstall", "--state-namespace", helloSystem, "--dry-run"); code != 0 {
		t.Errorf("dry run: exit code %d, want 0", code)
	}
	if code := h.record(t, "the operator runs, and an expired Lease is in the given namespace", h.Kubeconfig,
		"uninstall", "--state-namespace", helloSystem); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	running.stop(t)
	h.Kubectl(t, "", "delete", "lease,configmap", "hello.example.com", "--namespace", "default", "--ignore-not-found")
	h.Kubectl(t, "", "delete", "lease", "hello.example.com", "--namespace", helloSystem)
}

// staleLease is a Lease whose holder was killed. It lasts one second.
const staleLease = `apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: hello.example.com, namespace: ` + helloSystem + `}
spec: {holderIdentity: killed_00000000-0000-0000-0000-000000000000, leaseDurationSeconds: 1, renewTime: "2020-01-01T00:00:00.000000Z"}
`

func (h *helloTools) saysWhatIsLeft(t *testing.T) {
	powerless := cluster.KubeconfigOf(t, h.Account(t, "bystander"))
	refused := rest.AnonymousClientConfig(h.Config)
	refused.Host = "https://127.0.0.1:1"
	partly := h.Account(t, "partly",
		rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"hellos", "hellos/status"}, Verbs: []string{"get", "list", "patch"}})
	for _, namespace := range []string{"default", helloSystem} {
		h.Kubectl(t, "", "create", "role", "partly", "--namespace", namespace, "--verb=get,list", "--resource=configmaps,leases.coordination.k8s.io")
		h.Kubectl(t, "", "create", "rolebinding", "partly", "--namespace", namespace, "--role=partly", "--serviceaccount=default:partly")
	}
	unlisted := h.Account(t, "unlisted",
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}})
	state := []string{"uninstall", "--state-namespace", helloSystem}
	for _, kind := range []string{"apiVersion: v1\nkind: ConfigMap\n", "apiVersion: coordination.k8s.io/v1\nkind: Lease\n"} {
		h.Kubectl(t, kind+"metadata: {name: hello.example.com, namespace: "+helloSystem+"}\n", "apply", "-f", "-")
	}
	for _, one := range []struct {
		note, kubeconfig string
		args             []string
		code             int
	}{
		{"nothing listens at the server's address", cluster.KubeconfigOf(t, refused), state, 1},
		{"the token is invalid", h.kubeconfig(t, "nonsense"), state, 1},
		{"the account has no rights", powerless, state, 1},
		{"the account has no rights, and the namespace is not given", powerless, []string{"uninstall"}, 1},
		{"the namespace is not given", h.Kubeconfig, []string{"uninstall"}, 1},
		{"the namespace is another one", h.Kubeconfig, []string{"uninstall", "--state-namespace", "default"}, 1},
		{"the namespace is another one, and the account cannot look elsewhere", cluster.KubeconfigOf(t, partly), []string{"uninstall", "--state-namespace", "default"}, 1},
		{"the account cannot list objects", cluster.KubeconfigOf(t, unlisted), state, 1},
		{"the operator is stopped", h.Kubeconfig, append(state, "--dry-run"), 0},
		{"the account cannot delete the operator's own objects", cluster.KubeconfigOf(t, partly), state, 1},
		{"the operator is stopped", h.Kubeconfig, state, 0},
		{"everything is removed already", h.Kubeconfig, state, 0},
		{"everything is removed already, and the namespace is not given", h.Kubeconfig, []string{"uninstall"}, 0},
	} {
		if code := h.record(t, one.note, one.kubeconfig, one.args...); code != one.code {
			t.Errorf("hello %s, %s: exit code %d, want %d", strings.Join(one.args, " "), one.note, code, one.code)
		}
	}
	left := h.Kubectl(t, "", "get", "lease,configmap", "--all-namespaces", "-o", "name")
	if strings.Contains(left, "/hello.example.com\n") {
		t.Errorf("left are\n%s", left)
	}
	if status := h.Kubectl(t, "", "get", "hello", "world", "-o", "jsonpath={.status.records}{.metadata.finalizers}"); status != "" {
		t.Errorf("the object has %s", status)
	}
}
