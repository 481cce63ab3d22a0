package acceptance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// upWithNode starts a cluster with a real node that has the image busybox.
func upWithNode(t *testing.T, dir string) *upProcess {
	t.Helper()
	u := up(t, dir, "--node=real")
	if r := run(t, dir, "image", "load", busyboxArchive(t)); r.code != 0 || r.stdout != "loaded "+busybox+"\n" {
		t.Fatalf("image load: %+v", r)
	}
	if r := run(t, dir, "image", "load", "none.tar"); r.code != 1 || !strings.Contains(r.stderr, "none.tar: no such file") {
		t.Errorf("image load of a file that does not exist: %+v", r)
	}
	return u
}

// shellPod is a Pod that runs a script.
func shellPod(name, script, more string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: {
  terminationGracePeriodSeconds: 5, containers: [{name: c, image: "%s", command: [sh, -c, %q]%s}]}}`, name, name, busybox, script, more)
}

const (
	webScript = "echo served by a container >/tmp/index.html; echo started; exec httpd -f -p 8080 -h /tmp"
	webReady  = `, readinessProbe: {httpGet: {port: 8080, path: /index.html}, periodSeconds: 1}`
)

// On a real node, Pods are containers: kubectl reaches them, they reach Services and the API server, and what goes wrong is reported as on any node.
func TestNodeRunsContainers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := upWithNode(t, dir)
	c := inCluster{dir: dir, kubeconfig: u.kubeconfig}
	c.client, c.dynamic = clients(t, u.kubeconfig)
	t.Run("group", func(t *testing.T) {
		for name, part := range map[string]func(*testing.T){
			"kubectl reaches a container":        c.reachedByKubectl,
			"a container reaches the API server": c.reachesTheAPIServer,
			"an init container runs first":       c.initContainer,
			"a job ends":                         c.jobEnds,
			"a volume keeps its data":            c.volumeKeepsData,
			"what goes wrong is reported":        c.wrongPods,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				part(t)
			})
		}
	})
}

// awaitReady waits until a Pod is ready.
func (c inCluster) awaitReady(t *testing.T, name string) {
	t.Helper()
	eventually(t, func() error {
		pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%s is not ready: %+v", name, pod.Status.ContainerStatuses)
	})
}

func (c inCluster) reachedByKubectl(t *testing.T) {
	c.create(t, shellPod("web", webScript, webReady),
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}}`,
		shellPod("client", "while :; do sleep 1; done", ""))
	c.awaitReady(t, "web")
	c.awaitReady(t, "client")
	if r := run(t, c.dir, "kubectl", "logs", "web"); r.stdout != "started\n" {
		t.Errorf("logs: %+v", r)
	}
	if r := run(t, c.dir, "kubectl", "exec", "web", "--", "id"); !strings.HasPrefix(r.stdout, "uid=0") {
		t.Errorf("exec: %+v", r)
	}
	service, err := c.client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // kube-proxy needs a moment.
		r := run(t, c.dir, "kubectl", "exec", "client", "--", "wget", "-qO-", "http://"+service.Spec.ClusterIP+"/index.html")
		if r.stdout != "served by a container\n" {
			return fmt.Errorf("a Pod calls a Service: %+v", r)
		}
		return nil
	})
	copied := filepath.Join(t.TempDir(), "index.html")
	if r := run(t, c.dir, "kubectl", "cp", "web:/tmp/index.html", copied); r.code != 0 {
		t.Errorf("cp: %+v", r)
	}
	if text, err := os.ReadFile(copied); string(text) != "served by a container\n" {
		t.Errorf("copied %q: %v", text, err)
	}
	c.portForward(t)
}

func (c inCluster) portForward(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), "kubectl", "port-forward", "pod/web", ":8080")
	cmd.Dir, cmd.Env = c.dir, environment()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, _, found := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " -> ")
	if err != nil || !found {
		t.Fatalf("port-forward prints %q: %v", line, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/index.html", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // It was read.
	if text, err := io.ReadAll(response.Body); string(text) != "served by a container\n" {
		t.Errorf("port-forward gets %q: %v", text, err)
	}
	cancel()
	_ = cmd.Wait() // It was killed.
}

func (c inCluster) reachesTheAPIServer(t *testing.T) {
	c.create(t, shellPod("caller", "caller; sleep 3600", ""))
	eventually(t, func() error {
		if r := run(t, c.dir, "kubectl", "logs", "caller"); !strings.Contains(r.stdout, `"gitVersion": "`+kubernetesVersion(t)+`"`) {
			return fmt.Errorf("the Pod got %+v", r)
		}
		return nil
	})
}

func (c inCluster) initContainer(t *testing.T) {
	c.create(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: prepared}, spec: {
  terminationGracePeriodSeconds: 1, initContainers: [{name: first, image: "%[1]s", command: [sh, -c, "echo prepared >/work/file"], volumeMounts: [{name: work, mountPath: /work}]}],
  containers: [{name: c, image: "%[1]s", command: [sh, -c, "cat /work/file; sleep 3600"], volumeMounts: [{name: work, mountPath: /work}]}],
  volumes: [{name: work, emptyDir: {}}]}}`, busybox))
	c.awaitReady(t, "prepared")
	eventually(t, func() error {
		if r := run(t, c.dir, "kubectl", "logs", "prepared"); r.stdout != "prepared\n" {
			return fmt.Errorf("logs: %+v", r)
		}
		return nil
	})
}

func (c inCluster) jobEnds(t *testing.T) {
	c.create(t, fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {spec: {
  restartPolicy: Never, containers: [{name: c, image: "%s", command: [sh, -c, "echo done"]}]}}}}`, busybox))
	eventually(t, func() error {
		job, err := c.client.BatchV1().Jobs("default").Get(t.Context(), "once", metav1.GetOptions{})
		if err == nil && job.Status.Succeeded != 1 {
			err = fmt.Errorf("the job is %+v", job.Status)
		}
		return err
	})
	if r := run(t, c.dir, "kubectl", "logs", "job/once"); r.stdout != "done\n" {
		t.Errorf("logs: %+v", r)
	}
}

// A Pod of a user without rights writes into a volume. A second one reads it. The directory goes with the claim.
func (c inCluster) volumeKeepsData(t *testing.T) {
	user := func(name, script string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {restartPolicy: Never,
  securityContext: {runAsUser: 1000, runAsNonRoot: true, fsGroup: 2000},
  containers: [{name: c, image: "%s", command: [sh, -c, %q], volumeMounts: [{name: data, mountPath: /data}]}],
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}}`, name, busybox, script)
	}
	ended := func(name string) {
		eventually(t, func() error {
			pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase != corev1.PodSucceeded {
				err = fmt.Errorf("%s is %s: %+v", name, pod.Status.Phase, pod.Status.ContainerStatuses)
			}
			return err
		})
	}
	c.create(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, user("writer", "echo kept >/data/file"))
	ended("writer")
	c.create(t, user("reader", "cat /data/file"))
	ended("reader")
	if r := run(t, c.dir, "kubectl", "logs", "reader"); r.stdout != "kept\n" {
		t.Errorf("logs: %+v", r)
	}
	volumes := filepath.Join(c.dir, ".devcluster", "node", "volumes", "*")
	if found, err := filepath.Glob(volumes); err != nil || len(found) != 1 {
		t.Errorf("the directories of volumes are %q: %v", found, err)
	}
	if r := run(t, c.dir, "kubectl", "delete", "pod/writer", "pod/reader", "pvc/data"); r.code != 0 {
		t.Errorf("delete: %+v", r)
	}
	eventually(t, func() error {
		found, err := filepath.Glob(volumes)
		if len(found) > 0 {
			err = fmt.Errorf("directories are left: %q", found)
		}
		return err
	})
}

// Each Pod fails in another way. The reason is in its status, as a kubelet gives it.
func (c inCluster) wrongPods(t *testing.T) {
	for name, test := range map[string]struct{ manifest, reason string }{
		"unknown-image": {
			`{apiVersion: v1, kind: Pod, metadata: {name: unknown-image}, spec: {containers: [{name: c, image: "example.org/unknown:1"}]}}`,
			"ErrImagePull",
		},
		"wrong-command": {
			fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: wrong-command}, spec: {containers: [{name: c, image: "%s", command: [/none]}]}}`, busybox),
			"StartError",
		},
		"missing-secret": {
			shellPod("missing-secret", "sleep 3600", ", envFrom: [{secretRef: {name: none}}]"), "CreateContainerConfigError",
		},
		"too-much-memory": {
			shellPod("too-much-memory", "tail /dev/zero", ", resources: {limits: {memory: 32Mi}}"), "OOMKilled",
		},
		"exits": {shellPod("exits", "exit 7", ""), "Error"},
		"not-alive": {
			shellPod("not-alive", "while :; do sleep 1; done",
				", livenessProbe: {exec: {command: [cat, /none]}, periodSeconds: 1, failureThreshold: 1, terminationGracePeriodSeconds: 1}"), "Error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.create(t, test.manifest)
			eventually(t, func() error {
				pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
				if err != nil || hasReason(pod, test.reason) {
					return err
				}
				return fmt.Errorf("no status has the reason %s: %+v", test.reason, pod.Status.ContainerStatuses)
			})
		})
	}
}

// hasReason reports whether a container of a Pod waits for a reason, or has ended with it.
func hasReason(pod *corev1.Pod, reason string) bool {
	for _, s := range pod.Status.ContainerStatuses {
		for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
			if state.Waiting != nil && state.Waiting.Reason == reason || state.Terminated != nil && state.Terminated.Reason == reason {
				return true
			}
		}
	}
	return false
}

// A container gets its grace period when the cluster stops. Nothing of the node is left after that, and only empty cgroups after a kill. The next
// start brings Pods back.
func TestNodeLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := upWithNode(t, dir)
	c := inCluster{dir: dir, kubeconfig: u.kubeconfig}
	c.client, c.dynamic = clients(t, u.kubeconfig)
	c.create(t, shellPod("slow", "trap 'sleep 1; echo stopped; exit 0' TERM; echo started; while :; do sleep 0.1; done", ""))
	c.awaitReady(t, "slow")
	stopped(t, u)
	c.logsOnDisk(t, "started", "stopped")
	eventually(t, func() error { return nothingLeftOf(dir) })

	u = up(t, dir, "--node=real")
	c.client, c.dynamic = clients(t, u.kubeconfig)
	eventually(t, func() error {
		pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), "slow", metav1.GetOptions{})
		if err == nil && (len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount == 0) {
			err = fmt.Errorf("it was not restarted: %+v", pod.Status.ContainerStatuses)
		}
		return err
	})
	if err := u.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.wait()
	eventually(t, func() error { return runningOf(dir) })
	stopped(t, up(t, dir, "--node=real"))
	eventually(t, func() error { return nothingLeftOf(dir) })
}

// stopped stops a cluster.
func stopped(t *testing.T, u *upProcess) {
	t.Helper()
	if r := run(t, u.dir, "down"); r.code != 0 {
		t.Fatalf("down: %+v", r)
	}
	if code := u.wait(); code != 0 {
		t.Errorf("up exits with %d, want 0", code)
	}
}

// logsOnDisk checks what the container of the Pod slow has logged.
func (c inCluster) logsOnDisk(t *testing.T, wanted ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, ".devcluster", "node", "pods", "default_slow_*", "c", "0.log"))
	if err != nil || len(files) != 1 {
		t.Fatalf("found the logs %q: %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range wanted {
		if !strings.Contains(string(text), want) {
			t.Errorf("the container has not logged %q: %s", want, text)
		}
	}
}

// runningOf returns an error that names what is left of the node of a cluster: processes and mounts.
func runningOf(dir string) error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, file := range lines {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), filepath.Join(dir, ".devcluster")) {
			return fmt.Errorf("a process is left: %q", text)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err == nil && strings.Contains(string(mounts), dir) {
		err = errors.New("a mount is left")
	}
	return err
}

// nothingLeftOf also names cgroups.
func nothingLeftOf(dir string) error {
	if err := runningOf(dir); err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(dir, ".devcluster", "node", "kubelet.yaml"))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(config), "\ncgroupRoot: /")
	name, _, _ := strings.Cut(rest, "\n")
	left, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if err == nil && (name == "" || len(left) > 0) {
		err = fmt.Errorf("cgroups are left: %q, %q", name, left)
	}
	return err
}
