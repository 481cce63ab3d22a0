package acceptance

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// upWithNode starts a cluster with a real node that has the image busybox, and returns clients for it.
func upWithNode(t *testing.T, dir string) (*upProcess, inCluster) {
	t.Helper()
	u := up(t, dir, "--node=real")
	buildBusybox(t, dir)
	if status := run(t, dir, "status"); !strings.Contains(status.stdout, "\nnode                     real, ready\nvolumes                  file systems of their size\nimage                    "+busybox+"\n") {
		t.Errorf("status: %+v", status)
	}
	if r := run(t, dir, "image", "load", "none.tar"); r.code != 1 || !strings.Contains(r.stderr, "none.tar: no such file") {
		t.Errorf("image load of a file that does not exist: %+v", r)
	}
	c := inCluster{dir: dir, kubeconfig: u.kubeconfig}
	c.client, c.dynamic = clients(t, u.kubeconfig)
	return u, c
}

// shellPod is a Pod that runs a script.
func shellPod(name, script, more string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %s}}, spec: {
  terminationGracePeriodSeconds: 5, containers: [{name: c, image: "%s", command: [sh, -c, %q]%s}]}}`, name, name, busybox, script, more)
}

// On a real node, Pods are containers: kubectl reaches them, they reach Services and the API server, and what goes wrong is reported as on any node.
func TestNodeRunsContainers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, c := upWithNode(t, dir)
	t.Run("group", func(t *testing.T) {
		for name, part := range map[string]func(*testing.T){
			"kubectl reaches a container":        c.reachedByKubectl,
			"kubectl follows logs and attaches":  c.logsAndAttach,
			"a container reaches the API server": c.reachesTheAPIServer,
			"a webhook in a Pod is called":       c.webhookInPod,
			"names are resolved":                 c.namesAreResolved,
			"images are built":                   c.imagesAreBuilt,
			"an init container runs first":       c.initContainer,
			"a job ends":                         c.jobEnds,
			"a volume keeps its data":            c.volumeKeepsData,
			"a full volume grows":                c.volumeIsFullAndGrows,
			"a retained volume stays":            c.volumeIsRetained,
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

// logged returns an error unless a Pod has logged a text.
func (c inCluster) logged(t *testing.T, pod, text string) error {
	t.Helper()
	if r := run(t, c.dir, "kubectl", "logs", pod); r.stdout != text {
		return fmt.Errorf("logs of %s: %+v", pod, r)
	}
	return nil
}

// awaitRestart waits until the container of a Pod has been started again.
func (c inCluster) awaitRestart(t *testing.T, name string) {
	t.Helper()
	eventually(t, func() error {
		pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && (len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount == 0) {
			err = fmt.Errorf("%s was not started again: %+v", name, pod.Status.ContainerStatuses)
		}
		return err
	})
}

func (c inCluster) initContainer(t *testing.T) {
	c.create(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: prepared}, spec: {
  terminationGracePeriodSeconds: 1, initContainers: [{name: first, image: "%[1]s", command: [sh, -c, "echo prepared >/scratch/file"], volumeMounts: [{name: work, mountPath: /scratch}]}],
  containers: [{name: c, image: "%[1]s", command: [sh, -c, "cat /scratch/file; sleep 3600"], volumeMounts: [{name: work, mountPath: /scratch}]}],
  volumes: [{name: work, emptyDir: {}}]}}`, busybox))
	c.awaitReady(t, "prepared")
	eventually(t, func() error { return c.logged(t, "prepared", "prepared\n") })
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
