package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// modelNode plays the controller of StatefulSets, the provisioner of volumes and the kubelet with the script server.sh. TestNodeRunsDatabases shows
// that the real ones do the same.
type modelNode struct {
	w *einmaltest.World
	// volumes are the contents of volumes, by the uid of their claim.
	volumes map[types.UID]*volume
	// used is how full each volume is, in percent.
	used int32
	// unsteady reports whether each answer of the primary says that its volume is much fuller or emptier than before.
	unsteady bool
	// refused is what the server says of parameters that it does not accept.
	refused string
	// mu is held while servers do something.
	mu sync.Mutex
	// servers are the configurations of the running servers, by their Pods, and connected whether each standby gets what the primary writes.
	servers   map[string]*configuration
	connected map[string]bool
	// written is how much apps have written, as far as they know.
	written int
	// created is how many databases were created.
	created int
	// killed reports whether servers end without having written everything.
	killed bool
	// stays reports whether standbys cannot be promoted.
	stays bool
	// apart reports whether standbys that start get no connection to the primary.
	apart bool
	// deaf reports whether standbys get nothing of what an ending primary writes last.
	deaf bool
	// off are the Pods whose node is off, and givenUp reports whether apps know that something is lost.
	off     map[string]bool
	givenUp bool
	// slots are the slots of the primary, and true for those that still have all that the standby needs.
	slots map[string]bool
	// lag is what the primary says of all standbys.
	lag int64
	// images are what the operator's flags say when it starts, and missing is an image that cannot be pulled.
	images  images
	missing string
	// damaged is the name of a backup that cannot be restored.
	damaged string
	// unrestored is what load.sh says of parts that could not be restored.
	unrestored string
	// registry has the metrics of the operator.
	registry *prometheus.Registry
	// backups plays what makes backups.
	backups backups
	// silent are the Pods whose servers do not answer the operator.
	silent map[string]bool
	// full reports whether apps have all connections that they can have.
	full bool
	// unlogged reports whether apps have unlogged tables.
	unlogged bool
	// cut reports whether the operator cannot reach servers.
	cut bool
}

// step is the time between two events, so that the operator sees each of them alone.
const step = time.Second

// terminating is the finalizer of Pods of the model: it stands for the grace period.
const terminating = "model.example.com/grace-period"

// start starts the operator and the node.
func start(w *einmaltest.World) *modelNode {
	w.AllowUnchecked(unchecked()...)
	n := &modelNode{w: w, volumes: map[types.UID]*volume{}, servers: map[string]*configuration{}, connected: map[string]bool{}, slots: map[string]bool{}, off: map[string]bool{}, silent: map[string]bool{}, used: 10, images: defaultImages()}
	w.Start(func(*einmaltest.Process) *einmal.Operator { return declare(clients{n, n}, n.images, n.metrics()) })
	w.React(&appsv1.StatefulSetList{}, func(object client.Object) { n.set(object.(*appsv1.StatefulSet)) })
	w.React(&corev1.PersistentVolumeClaimList{}, func(object client.Object) { n.claim(object.(*corev1.PersistentVolumeClaim)) })
	w.React(&corev1.ConfigMapList{}, func(object client.Object) { n.configure(object.(*corev1.ConfigMap)) })
	w.React(&batchv1.JobList{}, func(object client.Object) { n.job(object.(*batchv1.Job)) })
	for ordinal := range manifest.MostReplicas { // Each Pod can wait for others.
		w.React(&corev1.PodList{}, func(object client.Object) {
			if pod := object.(*corev1.Pod); ordinalOf(pod.Name) == ordinal && databaseOf(pod) != "" {
				n.pod(pod)
			}
		})
	}
	return n
}

// metrics returns the registry of a process that starts.
func (n *modelNode) metrics() *prometheus.Registry {
	n.registry = prometheus.NewRegistry()
	return n.registry
}

// set makes the claims and the Pods of a StatefulSet, and deletes those Pods that are too many.
func (n *modelNode) set(set *appsv1.StatefulSet) {
	for ordinal := range *set.Spec.Replicas {
		if n.exists(set) {
			n.create(n.claimOf(set, ordinal))
		}
	}
	<-time.After(step)
	if !n.exists(set) {
		return
	}
	if set.Status.UpdateRevision != revisionOf(set) || set.Status.ObservedGeneration != set.Generation {
		n.patchStatus(set, fmt.Sprintf(`{"replicas":%d,"observedGeneration":%d,"updateRevision":%q}`, *set.Spec.Replicas, set.Generation, revisionOf(set)))
	}
	for ordinal := range int32(manifest.MostReplicas) {
		n.setPod(set, ordinal)
	}
}

// setPod makes, adopts or deletes a Pod of a StatefulSet.
func (n *modelNode) setPod(set *appsv1.StatefulSet, ordinal int32) {
	pod := n.podOf(set, ordinal)
	existing := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	there := n.w.Get(existing)
	switch {
	case !n.exists(set): // It can be deleted while its Pods are looked at. What it adopts then would be deleted with it.
	case ordinal >= *set.Spec.Replicas:
		owner := metav1.GetControllerOf(existing) // One without a controller is adopted before it is deleted.
		if there && existing.DeletionTimestamp == nil && (owner == nil || owner.UID == set.UID) {
			n.delete(existing)
		}
	case there && existing.DeletionTimestamp != nil: // Kubernetes adopts no Pod that is being deleted.
	case there && metav1.GetControllerOf(existing) == nil:
		owners, err := json.Marshal(append(existing.OwnerReferences, pod.OwnerReferences...))
		if err != nil {
			n.w.Fatal(err)
		}
		n.patch(existing, `{"metadata":{"ownerReferences":`+string(owners)+`}}`)
	default:
		n.create(pod)
	}
}

// claimOf returns the claim of a Pod of a StatefulSet.
func (n *modelNode) claimOf(set *appsv1.StatefulSet, ordinal int32) *corev1.PersistentVolumeClaim {
	claim := set.Spec.VolumeClaimTemplates[0].DeepCopy()
	claim.ObjectMeta = metav1.ObjectMeta{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%s-%d", claim.Name, set.Name, ordinal), Labels: claim.Labels}
	return claim
}

// setOf returns the StatefulSet of a Database.
func (n *modelNode) setOf(database string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: database}}
	n.w.Get(set)
	return set
}

// podOf returns a Pod of a StatefulSet.
func (n *modelNode) podOf(set *appsv1.StatefulSet, ordinal int32) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revisionOf(set)
	pod.Namespace, pod.Name, pod.Finalizers = set.Namespace, fmt.Sprintf("%s-%d", set.Name, ordinal), []string{terminating}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: set.Spec.VolumeClaimTemplates[0].Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: n.claimOf(set, ordinal).Name},
	}})
	return pod
}

// exists reports whether a StatefulSet still exists and is not being deleted. The world can have ended.
func (n *modelNode) exists(set *appsv1.StatefulSet) bool {
	now := &appsv1.StatefulSet{}
	err := n.w.Client().Get(n.w.Context(), client.ObjectKeyFromObject(set), now)
	return err == nil && now.UID == set.UID && now.DeletionTimestamp == nil
}

// revisionOf names the template of a StatefulSet.
func revisionOf(set *appsv1.StatefulSet) string {
	text, err := json.Marshal(set.Spec.Template)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s-%x", set.Name, crc32.ChecksumIEEE(text))
}

// create creates an object unless it exists: two changes of a StatefulSet at once can both lead to it.
func (n *modelNode) create(object client.Object) {
	err := n.w.Client().Create(n.w.Context(), object)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		n.w.Errorf("create %T %s: %v", object, object.GetName(), err)
	}
}

// delete deletes a Pod, which another change can have deleted already.
func (n *modelNode) delete(pod *corev1.Pod) {
	if err := n.w.Client().Delete(n.w.Context(), pod); client.IgnoreNotFound(err) != nil {
		n.w.Errorf("delete the Pod %s: %v", pod.Name, err)
	}
}

// claim binds a claim to a volume, and lets the volume grow.
func (n *modelNode) claim(claim *corev1.PersistentVolumeClaim) {
	requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	actual := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase == corev1.ClaimBound && actual.Cmp(requested) == 0 {
		return
	}
	<-time.After(step)
	n.patchStatus(claim, fmt.Sprintf(`{"phase":"Bound","capacity":{"storage":%q}}`, requested.String()))
}

// pod runs a server, or ends it.
func (n *modelNode) pod(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		if !slices.Contains(pod.Finalizers, terminating) {
			return // Something else keeps the object.
		}
		<-time.After(step)
		for n.isOff(pod) && n.running(pod) {
			<-time.After(step)
		}
		if n.running(pod) {
			n.end(pod.DeepCopy())
			n.finalize(pod)
		}
		for n.running(pod) {
			<-time.After(step)
		}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: databaseOf(pod)}}
		if n.w.Get(set) && set.DeletionTimestamp == nil {
			n.set(set)
		}
	case len(pod.Status.Conditions) == 0:
		<-time.After(step)
		n.start(pod)
	}
}

// isOff reports whether the node of a Pod is off.
func (n *modelNode) isOff(pod *corev1.Pod) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.off[pod.Name]
}

// finalize ends the grace period of a Pod. The operator can have changed the Pod meanwhile.
func (n *modelNode) finalize(pod *corev1.Pod) {
	for n.running(pod) {
		now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		if !n.w.Get(now) || now.UID != pod.UID {
			return
		}
		now.Finalizers = slices.DeleteFunc(now.Finalizers, func(one string) bool { return one == terminating })
		err := n.w.Client().Update(n.w.Context(), now)
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if pod.Spec.NodeName != "" { // What is left of the grace period is not needed.
		_ = n.w.Client().Delete(n.w.Context(), pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}) // It can be gone.
	}
}

// running reports whether a Pod still exists. The world can have ended.
func (n *modelNode) running(pod *corev1.Pod) bool {
	now := &corev1.Pod{}
	err := n.w.Client().Get(n.w.Context(), client.ObjectKeyFromObject(pod), now)
	return err == nil && now.UID == pod.UID
}

// ending reports whether a Pod is deleted or is being deleted.
func (n *modelNode) ending(pod *corev1.Pod) bool {
	now := &corev1.Pod{}
	err := n.w.Client().Get(n.w.Context(), client.ObjectKeyFromObject(pod), now)
	return err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil
}

// ordinalOf returns the ordinal of a Pod.
func ordinalOf(pod string) int {
	ordinal, err := strconv.Atoi(pod[strings.LastIndex(pod, "-")+1:])
	if err != nil {
		return -1
	}
	return ordinal
}

// databaseOf returns the name of the Database of a Pod.
func databaseOf(pod *corev1.Pod) string { return pod.Labels[manifest.NameLabel] }

// databaseIn returns the name and the engine of the Database of a Pod.
func databaseIn(pod *corev1.Pod) *v1.Database {
	return &v1.Database{ObjectMeta: metav1.ObjectMeta{Name: databaseOf(pod)}, Spec: v1.DatabaseSpec{Engine: v1.Engine(pod.Spec.Containers[0].Name)}}
}

func (n *modelNode) patch(object client.Object, merge string) {
	if err := n.w.Client().Patch(n.w.Context(), object, client.RawPatch(types.MergePatchType, []byte(merge))); client.IgnoreNotFound(err) != nil {
		n.w.Errorf("patch %T %s: %v", object, object.GetName(), err)
	}
}

func (n *modelNode) patchStatus(object client.Object, merge string) {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+merge+`}`))
	if err := n.w.Client().Status().Patch(n.w.Context(), object, patch); client.IgnoreNotFound(err) != nil {
		n.w.Errorf("patch the status of %T %s: %v", object, object.GetName(), err)
	}
}
