package acceptance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// inCluster is the cluster that the subtests of TestKubernetes share.
type inCluster struct {
	dir, kubeconfig string
	client          kubernetes.Interface
	dynamic         dynamic.Interface
}

// TestKubernetes checks that the cluster behaves like a real Kubernetes cluster.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := up(t, dir)
	c := inCluster{dir: dir, kubeconfig: u.kubeconfig}
	c.client, c.dynamic = clients(t, u.kubeconfig)
	checkLoopback(t, readStatus(t, dir).Server)
	// The group returns after all its parallel subtests, before the cleanup stops
	// the cluster.
	t.Run("group", func(t *testing.T) {
		for name, part := range map[string]func(*testing.T){
			"kubectl":           c.kubectl,
			"deployment":        c.deployment,
			"job":               c.job,
			"namespace":         c.namespace,
			"custom resource":   c.customResource,
			"volume":            c.volume,
			"wait and retain":   c.waitAndRetain,
			"unsupported claim": c.unsupportedClaim,
			"permissions":       c.permissions,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				part(t)
			})
		}
	})
}

// create applies YAML documents in the namespace default.
func (c inCluster) create(t *testing.T, documents ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(documents, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, c.dir, "kubectl", "create", "-f", file); r.code != 0 {
		t.Fatalf("kubectl create: %+v", r)
	}
}

func (c inCluster) kubectl(t *testing.T) {
	r := run(t, c.dir, "kubectl", "version")
	for _, want := range []string{"Client Version: " + kubernetesVersion(t), "Server Version: " + kubernetesVersion(t)} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("kubectl version does not print %q: %+v", want, r)
		}
	}
	below := filepath.Join(c.dir, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := run(t, below, "kubectl", "get", "nodes", "-o", "name"); r.stdout != "node/node-0\n" {
		t.Errorf("kubectl in a subdirectory: %+v", r)
	}
	if r := run(t, c.dir, "kubectl", "get", "configmap", "missing"); r.code != 1 ||
		!strings.Contains(r.stderr, "NotFound") {
		t.Errorf("kubectl get of a missing object, want exit code 1 and NotFound: %+v", r)
	}
	if r := run(t, c.dir, "kubectl", "get", "--help"); !strings.Contains(r.stdout, "kubectl get pods") {
		t.Errorf("kubectl's help is %q", r.stdout)
	}
	c.kubectlElsewhere(t)
}

// deployment checks that the Pods of a Deployment run and are deleted with it.
func (c inCluster) deployment(t *testing.T) {
	c.create(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {
  replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
  spec: {containers: [{name: web, image: example.invalid/web}]}}}}`)
	eventually(t, func() error {
		d, err := c.client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.AvailableReplicas != 2 {
			return fmt.Errorf("%d Pods are available", d.Status.AvailableReplicas)
		}
		return nil
	})
	pods := c.client.CoreV1().Pods("default")
	selector := metav1.ListOptions{LabelSelector: "app=web"}
	list, err := pods.List(t.Context(), selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "node-0" || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
			t.Errorf("Pod %s: %s on %q with address %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.Status.PodIP)
		}
	}
	if err := c.client.AppsV1().Deployments("default").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		list, err := pods.List(t.Context(), selector)
		if err == nil && len(list.Items) > 0 {
			err = errors.New("the Pods of the deleted Deployment still exist")
		}
		return err
	})
}

func (c inCluster) job(t *testing.T) {
	c.create(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {template: {spec: {
  restartPolicy: Never, containers: [{name: once, image: example.invalid/once}]}}}}`)
	eventually(t, func() error {
		job, err := c.client.BatchV1().Jobs("default").Get(t.Context(), "once", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range job.Status.Conditions {
			if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("the Job is not complete")
	})
}

func (c inCluster) namespace(t *testing.T) {
	c.create(t, `{apiVersion: v1, kind: Namespace, metadata: {name: short}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: inside, namespace: short}}`)
	namespaces := c.client.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), "short", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := namespaces.Get(t.Context(), "short", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the namespace still exists"), err)
	})
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.acceptance.example}
spec:
  group: acceptance.example
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          size: {type: integer}
        x-kubernetes-validations:
        - rule: "!has(self.size) || self.size % 2 == 0"
          message: the size must be even
`

func (c inCluster) customResource(t *testing.T) {
	c.create(t, definition)
	widgets := c.dynamic.Resource(schema.GroupVersionResource{
		Group: "acceptance.example", Version: "v1", Resource: "widgets",
	}).Namespace("default")
	widget := func(name string, size int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "acceptance.example/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name}, "size": size,
		}}
	}
	eventually(t, func() error {
		_, err := widgets.Create(t.Context(), widget("even", 2), metav1.CreateOptions{})
		return err
	})
	_, err := widgets.Create(t.Context(), widget("odd", 3), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the size must be even") {
		t.Errorf("create an object that violates the CEL rule: error %v, want Invalid", err)
	}
}

// volume binds, expands and deletes a claim.
func (c inCluster) volume(t *testing.T) {
	c.create(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {
  accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}`)
	claims := c.client.CoreV1().PersistentVolumeClaims("default")
	claim := c.claimOfSize(t, "1Gi")
	volumes := c.client.CoreV1().PersistentVolumes()
	volume, err := volumes.Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := volume.Spec.AccessModes; len(got) != 1 || got[0] != corev1.ReadWriteMany {
		t.Errorf("the volume has access modes %v, want ReadWriteMany", got)
	}

	c.grow(t, claim)
	if err := claims.Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := volumes.Get(t.Context(), volume.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the volume still exists"), err)
	})
}

// grow expands a claim and watches it. As soon as the claim has the new size, the
// volume must have it too and no condition may be left.
func (c inCluster) grow(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	claims := c.client.CoreV1().PersistentVolumeClaims("default")
	watch, err := claims.Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=data", ResourceVersion: claim.ResourceVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
	if _, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(waitTimeout)
	for {
		select {
		case <-deadline:
			t.Fatalf("the claim was not expanded within %s", waitTimeout)
		case event := <-watch.ResultChan():
			seen, ok := event.Object.(*corev1.PersistentVolumeClaim)
			if !ok {
				t.Fatalf("unexpected event %v", event)
			}
			if seen.Status.Capacity.Storage().String() == "3Gi" {
				c.checkGrown(t, seen)
				return
			}
		}
	}
}

func (c inCluster) checkGrown(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	volume, err := c.client.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := volume.Spec.Capacity.Storage().String(); got != "3Gi" {
		t.Errorf("the volume has %s when the claim has 3Gi", got)
	}
	if len(claim.Status.Conditions) > 0 {
		t.Errorf("conditions are left: %v", claim.Status.Conditions)
	}
}

func (c inCluster) claimOfSize(t *testing.T, size string) *corev1.PersistentVolumeClaim {
	t.Helper()
	var claim *corev1.PersistentVolumeClaim
	eventually(t, func() (err error) {
		claim, err = c.client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "data", metav1.GetOptions{})
		if err == nil && (claim.Status.Phase != corev1.ClaimBound || claim.Status.Capacity.Storage().String() != size) {
			err = fmt.Errorf("the claim is %s with %v", claim.Status.Phase, claim.Status.Capacity)
		}
		return err
	})
	return claim
}

// waitAndRetain uses a storage class with WaitForFirstConsumer and Retain.
func (c inCluster) waitAndRetain(t *testing.T) {
	c.create(t, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: late},
  provisioner: devcluster.einmal.dev/volumes, reclaimPolicy: Retain, volumeBindingMode: WaitForFirstConsumer}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: late}, spec: {
  storageClassName: late, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	claims := c.client.CoreV1().PersistentVolumeClaims("default")
	eventually(t, func() error {
		events, err := c.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=late,reason=WaitForFirstConsumer",
		})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("the claim has no event WaitForFirstConsumer")
		}
		return err
	})
	claim, err := claims.Get(t.Context(), "late", metav1.GetOptions{})
	if err != nil || claim.Spec.VolumeName != "" {
		t.Errorf("the claim has volume %q before a Pod uses it, %v", claim.Spec.VolumeName, err)
	}
	c.create(t, `{apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {
  containers: [{name: c, image: example.invalid/c}], volumes: [{name: v, persistentVolumeClaim: {claimName: late}}]}}`)
	eventually(t, func() error {
		pod, err := c.client.CoreV1().Pods("default").Get(t.Context(), "late", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("the Pod is %s", pod.Status.Phase)
		}
		return err
	})
	if claim, err = claims.Get(t.Context(), "late", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if r := run(t, c.dir, "kubectl", "delete", "pod/late", "pvc/late"); r.code != 0 {
		t.Fatalf("delete: %+v", r)
	}
	eventually(t, func() error {
		volume, err := c.client.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err == nil && volume.Status.Phase != corev1.VolumeReleased {
			err = fmt.Errorf("the volume is %s", volume.Status.Phase)
		}
		return err
	})
}

// unsupportedClaim checks the event for a claim that cannot be provisioned.
func (c inCluster) unsupportedClaim(t *testing.T) {
	c.create(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: selective}, spec: {
  accessModes: [ReadWriteOnce], selector: {matchLabels: {a: b}}, resources: {requests: {storage: 1Gi}}}}`)
	eventually(t, func() error {
		events, err := c.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=selective,reason=ProvisioningFailed",
		})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("the claim has no event ProvisioningFailed")
		}
		return err
	})
}

// permissions checks that a ServiceAccount has exactly the permission granted to it.
func (c inCluster) permissions(t *testing.T) {
	c.create(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader},
  rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: reader},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader},
  subjects: [{kind: ServiceAccount, name: reader, namespace: default}]}`)
	token := strings.TrimSpace(run(t, c.dir, "kubectl", "create", "token", "reader").stdout)
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.CertData, config.KeyData = nil, nil
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // the authorizer sees the new role with a delay
		_, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	})
	if _, err := client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list Secrets: error %v, want Forbidden", err)
	}
	if _, err := client.CoreV1().ConfigMaps("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list ConfigMaps in another namespace: error %v, want Forbidden", err)
	}
}
