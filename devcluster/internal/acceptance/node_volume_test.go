package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mountedPod is a Pod of a user without rights that runs a script. It has the volume of a claim in /data.
func mountedPod(name, claim, script string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1,
  securityContext: {runAsUser: 1000, runAsNonRoot: true, fsGroup: 2000},
  containers: [{name: c, image: "%s", command: [sh, -c, %q], volumeMounts: [{name: data, mountPath: /data}]}],
  volumes: [{name: data, persistentVolumeClaim: {claimName: %s}}]}}`, name, busybox, script, claim)
}

func claim(name, more string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Mi}}%s}}`, name, more)
}

// awaitEnd waits until the containers of a Pod have ended without an error.
func (c inCluster) awaitEnd(t *testing.T, name string) {
	t.Helper()
	eventually(t, func() error {
		pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodSucceeded {
			err = fmt.Errorf("%s is %s: %+v", name, pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return err
	})
}

// volumeOf returns the name of the volume of a claim.
func (c inCluster) volumeOf(t *testing.T, claim string) string {
	t.Helper()
	found, err := c.client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), claim, metav1.GetOptions{})
	if err != nil || found.Spec.VolumeName == "" {
		t.Fatalf("the claim %s has no volume: %+v: %v", claim, found, err)
	}
	return found.Spec.VolumeName
}

// filesOf returns what the data directory has of a volume.
func (c inCluster) filesOf(t *testing.T, volume string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(c.dir, ".devcluster", "node", "volumes", volume+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A Pod of a user without rights writes into a volume. A second one reads it. The file system goes with the claim.
func (c inCluster) volumeKeepsData(t *testing.T) {
	c.create(t, claim("data", ""), mountedPod("writer", "data", "echo kept >/data/file"))
	c.awaitEnd(t, "writer")
	c.create(t, mountedPod("reader", "data", "cat /data/file"))
	c.awaitEnd(t, "reader")
	if err := c.logged(t, "reader", "kept\n"); err != nil {
		t.Error(err)
	}
	volume := c.volumeOf(t, "data")
	if found := c.filesOf(t, volume); len(found) != 2 {
		t.Errorf("the volume has the files %q, want the file system and where it is mounted", found)
	}
	if r := run(t, c.dir, "kubectl", "delete", "pod/writer", "pod/reader", "pvc/data"); r.code != 0 {
		t.Errorf("delete: %+v", r)
	}
	eventually(t, func() error {
		if found := c.filesOf(t, volume); len(found) > 0 {
			return fmt.Errorf("files are left: %q", found)
		}
		return nil
	})
}

// A program that fills its volume gets ENOSPC. It goes on when the claim has grown, without a restart. A claim below the smallest size says what it has.
func (c inCluster) volumeIsFullAndGrows(t *testing.T) {
	c.create(t, claim("full", ""), mountedPod("fills", "full", "while :; do dd if=/dev/zero bs=1M count=16 >>/data/file || echo full; sleep 0.2; [ -e /data/enough ] && exit; done"))
	eventually(t, func() error {
		if r := run(t, c.dir, "kubectl", "logs", "fills"); !strings.Contains(r.stdout, "No space left on device") {
			return fmt.Errorf("logs: %+v", r)
		}
		return nil
	})
	c.awaitCapacity(t, "full", "300Mi")
	before, err := os.Stat(filepath.Join(c.dir, ".devcluster", "node", "volumes", c.volumeOf(t, "full")+".xfs"))
	if err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec": {"resources": {"requests": {"storage": "640Mi"}}}}`)
	if _, err := c.client.CoreV1().PersistentVolumeClaims("default").Patch(t.Context(), "full", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.awaitCapacity(t, "full", "640Mi")
	script := fmt.Sprintf("[ $(stat -c %%s /data/file) -gt %d ] && touch /data/enough", before.Size())
	eventually(t, func() error {
		if r := run(t, c.dir, "kubectl", "exec", "fills", "--", "sh", "-c", script); r.code != 0 {
			return fmt.Errorf("the program has not gone on: %+v", r)
		}
		return nil
	})
	c.awaitEnd(t, "fills")
}

func (c inCluster) awaitCapacity(t *testing.T, claim, want string) {
	t.Helper()
	eventually(t, func() error {
		found, err := c.client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), claim, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := found.Status.Capacity.Storage().String(); got != want {
			return fmt.Errorf("the claim %s has %s, want %s", claim, got, want)
		}
		return nil
	})
}

// A class that waits for a Pod binds its claim late. With Retain, the data stays after the claim.
func (c inCluster) volumeIsRetained(t *testing.T) {
	c.create(t, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: careful}, provisioner: devcluster.einmal.dev/volumes,
  reclaimPolicy: Retain, volumeBindingMode: WaitForFirstConsumer}`,
		claim("late", ", storageClassName: careful"), claim("block", ", volumeMode: Block"))
	eventually(t, func() error { return c.hasEvent(t, "block", "use Filesystem") })
	eventually(t, func() error { return c.hasEvent(t, "late", "waiting for first consumer") })
	c.create(t, mountedPod("consumer", "late", "echo kept >/data/file"))
	c.awaitEnd(t, "consumer")
	volume := c.volumeOf(t, "late")
	if r := run(t, c.dir, "kubectl", "delete", "pod/consumer", "pvc/late", "pvc/block"); r.code != 0 {
		t.Errorf("delete: %+v", r)
	}
	eventually(t, func() error {
		found, err := c.client.CoreV1().PersistentVolumes().Get(t.Context(), volume, metav1.GetOptions{})
		if err == nil && found.Status.Phase != corev1.VolumeReleased {
			err = fmt.Errorf("the volume is %s", found.Status.Phase)
		}
		return err
	})
	if found := c.filesOf(t, volume); len(found) != 2 {
		t.Errorf("the volume has the files %q, want the file system and where it is mounted", found)
	}
}

// hasEvent returns an error unless an object has an event with a text.
func (c inCluster) hasEvent(t *testing.T, name, text string) error {
	t.Helper()
	events, err := c.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		return err
	}
	for _, event := range events.Items {
		if strings.Contains(event.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("no event of %s has the text %q", name, text)
}
