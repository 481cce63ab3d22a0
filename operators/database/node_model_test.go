package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/postgres"
)

// modelNode plays the controller of StatefulSets, the provisioner of volumes and the kubelet with the script server.sh. TestNodeRunsDatabases shows
// that the real ones do the same.
type modelNode struct {
	w *einmaltest.World
	// volumes are the contents of volumes, by the uid of their claim.
	volumes map[types.UID]*volume
	// used is how full each volume is, in percent.
	used int32
	// refused is what the server says of parameters that it does not accept.
	refused string
	// servers are the configurations of the running servers, by their Pods, and connected whether each standby gets what the primary writes.
	servers   map[string]*configuration
	connected map[string]bool
	// slots are the slots of the primary, and true for those that still have all that the standby needs.
	slots map[string]bool
	// lag is what the primary says of all standbys.
	lag int64
	// image is what the operator's flag --image says when it starts, missing an image that cannot be pulled.
	image, missing string
	// cut reports whether the operator cannot reach servers.
	cut bool
}

// volume is what a volume contains.
type volume struct {
	// copied reports whether it is the copy of a standby.
	copied bool
	// passwords are those of the users, by their names.
	passwords map[string]string
}

// configuration is what a server runs with: what it has read last, and with how many connections it has started.
type configuration struct{ loaded, wanted, connections string }

// step is the time between two events, so that the operator sees each of them alone.
const step = time.Second

// terminating is the finalizer of Pods of the model: it stands for the grace period.
const terminating = "model.example.com/grace-period"

// start starts the operator and the node.
func start(w *einmaltest.World) *modelNode {
	w.AllowUnchecked(unchecked()...)
	n := &modelNode{w: w, volumes: map[types.UID]*volume{}, servers: map[string]*configuration{}, connected: map[string]bool{}, slots: map[string]bool{}, used: 10, image: defaultImage}
	w.Start(func(*einmaltest.Process) *einmal.Operator { return declare(n, n.image) })
	w.React(&appsv1.StatefulSetList{}, func(object client.Object) { n.set(object.(*appsv1.StatefulSet)) })
	w.React(&corev1.PersistentVolumeClaimList{}, func(object client.Object) { n.claim(object.(*corev1.PersistentVolumeClaim)) })
	w.React(&corev1.ConfigMapList{}, func(object client.Object) { n.configure(object.(*corev1.ConfigMap)) })
	w.React(&corev1.PodList{}, func(object client.Object) { n.pod(object.(*corev1.Pod)) })
	return n
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
		if there && existing.DeletionTimestamp == nil && metav1.IsControlledBy(existing, set) {
			n.delete(existing)
		}
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
		<-time.After(step)
		delete(n.servers, pod.Name)
		n.patch(pod, `{"metadata":{"finalizers":null}}`)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: databaseOf(pod)}}
		if n.w.Get(set) && set.DeletionTimestamp == nil {
			n.set(set)
		}
	case len(pod.Status.Conditions) == 0:
		<-time.After(step)
		n.start(pod)
	}
}

// databaseOf returns the name of the Database of a Pod.
func databaseOf(pod *corev1.Pod) string { return pod.Labels[manifest.NameLabel] }

// start does what server.sh does.
func (n *modelNode) start(pod *corev1.Pod) {
	grant := strings.Fields(pod.Annotations[manifest.GrantAnnotation])
	if len(grant) < 2 || grant[0] != string(pod.UID) {
		return // It waits.
	}
	if image := serverImage(pod.Spec); image == n.missing {
		n.patchStatus(pod, fmt.Sprintf(`{"initContainerStatuses":[{"name":"data","ready":false,"restartCount":0,"image":%q,"imageID":"",
			"state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`, image))
		return
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: manifest.Claim(pod.Name)}}
	n.w.Get(claim)
	data, problem := n.volumes[claim.UID], ""
	switch {
	case grant[1] == "standby":
		data = n.copy(pod, data)
	case data == nil && len(grant) == 3 && grant[2] == "initdb":
		data = n.initialize(pod)
	case data == nil:
		problem = "DataMissing: the volume is empty"
	case data.copied:
		problem = "NotThePrimary: the volume holds the copy of a standby"
	}
	if data == nil {
		if problem != "" {
			n.patchStatus(pod, fmt.Sprintf(`{"initContainerStatuses":[{"name":"data","ready":false,"restartCount":1,"image":"i","imageID":"i",
				"lastState":{"terminated":{"exitCode":1,"message":%q}}}]}`, problem))
		}
		return
	}
	n.volumes[claim.UID] = data
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: databaseOf(pod) + "-config"}}
	n.w.Get(config)
	loaded, wanted := configured(config)
	n.servers[pod.Name] = &configuration{loaded, wanted, wanted}
	n.connected[pod.Name] = data.copied
	n.patchStatus(pod, `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`)
}

// initialize creates a database with the passwords of its Secrets.
func (n *modelNode) initialize(pod *corev1.Pod) *volume {
	data := &volume{passwords: map[string]string{}}
	for _, suffix := range []string{"-app", "-monitor", "-replication"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: databaseOf(pod) + suffix}}
		if !n.w.Get(secret) {
			n.w.Errorf("a server creates a database without the Secret %s", secret.Name)
		}
		data.passwords[string(secret.Data["username"])] = string(secret.Data["password"])
	}
	return data
}

// created returns how many databases were created.
func (n *modelNode) created() int {
	created := 0
	for _, volume := range n.volumes {
		if !volume.copied {
			created++
		}
	}
	return created
}

// copy returns the copy of a standby. A new one waits for the primary.
func (n *modelNode) copy(pod *corev1.Pod, has *volume) *volume {
	slot := "einmal_" + pod.Name[strings.LastIndex(pod.Name, "-")+1:]
	first := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: manifest.Claim(databaseOf(pod) + "-0")}}
	for n.servers[databaseOf(pod)+"-0"] == nil || !n.w.Get(first) || n.volumes[first.UID] == nil {
		if has != nil {
			return has
		}
		<-time.After(step)
		if now := pod.DeepCopy(); !n.w.Get(now) || now.UID != pod.UID || now.DeletionTimestamp != nil {
			return nil
		}
	}
	if has != nil && n.slots[slot] {
		return has
	}
	n.slots[slot] = true
	return &volume{copied: true, passwords: n.volumes[first.UID].passwords}
}

// Try logs in to the only database that there is.
func (n *modelNode) Try(_ context.Context, login postgres.Login) error {
	if n.cut {
		return errors.New("dial tcp: timeout")
	}
	for _, volume := range n.volumes {
		if password, known := volume.passwords[login.Username]; !known || password != login.Password.Reveal() {
			return postgres.ErrRefused
		}
	}
	return nil
}

// configure lets the running servers read their configuration.
func (n *modelNode) configure(config *corev1.ConfigMap) {
	<-time.After(reload)
	for _, server := range n.servers {
		server.loaded, server.wanted = configured(config)
	}
}

// configured returns what a configuration says of itself, and how many connections it wants.
func configured(config *corev1.ConfigMap) (of, connections string) {
	_, of, _ = strings.Cut(config.Data["postgresql.conf"], "einmal.configuration = ")
	_, connections, _ = strings.Cut(config.Data["parameters.conf"], "max_connections = ")
	return strings.Trim(of, "'\n"), connections
}

// Ask returns how full the volume is, what the server says of its configuration, and what the primary says of standbys.
func (n *modelNode) Ask(ctx context.Context, login postgres.Login) (postgres.State, error) {
	if err := n.Try(ctx, login); err != nil {
		return postgres.State{}, err
	}
	name, _, _ := strings.Cut(login.Host, ".")
	name, isPrimary := strings.CutSuffix(name, "-rw")
	if isPrimary {
		name += "-0"
	}
	server := n.servers[name]
	if server == nil {
		return postgres.State{}, errors.New("dial tcp: connection refused")
	}
	state := postgres.State{Used: n.used, Configuration: server.loaded, Refused: n.refused}
	if server.wanted != server.connections {
		state.Pending = "max_connections"
	}
	for _, slot := range slices.Sorted(maps.Keys(n.slots)) {
		if !isPrimary {
			break
		}
		standby := strings.TrimSuffix(name, "0") + strings.TrimPrefix(slot, "einmal_")
		one := postgres.Standby{Slot: slot, Lost: !n.slots[slot], Lag: n.lag}
		if n.servers[standby] != nil && n.connected[standby] && !one.Lost {
			one.State = "streaming"
		}
		state.Standbys = append(state.Standbys, one)
	}
	return state, nil
}

// Release drops a slot that is not in use.
func (n *modelNode) Release(ctx context.Context, login postgres.Login, slot string) error {
	delete(n.slots, slot)
	return n.Try(ctx, login)
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
