package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
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
	// server is the configuration of the running server.
	server configuration
	// image is what the operator's flag --image says when it starts, missing an image that cannot be pulled.
	image, missing string
	// cut reports whether the operator cannot reach servers.
	cut bool
}

// volume is what a volume contains.
type volume struct {
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
	n := &modelNode{w: w, volumes: map[types.UID]*volume{}, used: 10, image: defaultImage}
	w.Start(func(*einmaltest.Process) *einmal.Operator { return declare(n, n.image) })
	w.React(&appsv1.StatefulSetList{}, func(object client.Object) { n.set(object.(*appsv1.StatefulSet)) })
	w.React(&corev1.PersistentVolumeClaimList{}, func(object client.Object) { n.claim(object.(*corev1.PersistentVolumeClaim)) })
	w.React(&corev1.ConfigMapList{}, func(object client.Object) { n.configure(object.(*corev1.ConfigMap)) })
	w.React(&corev1.PodList{}, func(object client.Object) { n.pod(object.(*corev1.Pod)) })
	return n
}

// set makes the claim and the Pod of a StatefulSet.
func (n *modelNode) set(set *appsv1.StatefulSet) {
	if !n.exists(set) {
		return
	}
	template := set.Spec.VolumeClaimTemplates[0].DeepCopy()
	template.ObjectMeta = metav1.ObjectMeta{Namespace: set.Namespace, Name: template.Name + "-" + set.Name + "-0", Labels: template.Labels}
	n.create(template)
	<-time.After(step)
	if !n.exists(set) {
		return
	}
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	revision := revisionOf(set)
	if pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revision; set.Status.UpdateRevision != revision || set.Status.ObservedGeneration != set.Generation {
		n.patchStatus(set, fmt.Sprintf(`{"replicas":1,"observedGeneration":%d,"updateRevision":%q}`, set.Generation, revision))
	}
	pod.Namespace, pod.Name, pod.Finalizers = set.Namespace, set.Name+"-0", []string{terminating}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: set.Spec.VolumeClaimTemplates[0].Name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: template.Name},
	}})
	existing := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if n.w.Get(existing) && metav1.GetControllerOf(existing) == nil {
		owners, err := json.Marshal(append(existing.OwnerReferences, pod.OwnerReferences...))
		if err != nil {
			n.w.Fatal(err)
		}
		n.patch(existing, `{"metadata":{"ownerReferences":`+string(owners)+`}}`)
		return
	}
	n.create(pod)
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
		n.patch(pod, `{"metadata":{"finalizers":null}}`)
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: strings.TrimSuffix(pod.Name, "-0")}}
		if n.w.Get(set) && set.DeletionTimestamp == nil {
			n.set(set)
		}
	case len(pod.Status.Conditions) == 0:
		<-time.After(step)
		n.start(pod)
	}
}

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
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "data-" + pod.Name}}
	n.w.Get(claim)
	data := n.volumes[claim.UID]
	if data == nil {
		if len(grant) < 3 || grant[2] != "initdb" {
			n.patchStatus(pod, `{"initContainerStatuses":[{"name":"data","ready":false,"restartCount":1,"image":"i","imageID":"i",
				"lastState":{"terminated":{"exitCode":1,"message":"DataMissing: the volume is empty"}}}]}`)
			return
		}
		data = &volume{passwords: map[string]string{}}
		for _, suffix := range []string{"-app", "-monitor"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: strings.TrimSuffix(pod.Name, "-0") + suffix}}
			if !n.w.Get(secret) {
				n.w.Errorf("a server creates a database without the Secret %s", secret.Name)
			}
			data.passwords[string(secret.Data["username"])] = string(secret.Data["password"])
		}
		n.volumes[claim.UID] = data
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: strings.TrimSuffix(pod.Name, "-0") + "-config"}}
	n.w.Get(config)
	n.server.loaded, n.server.wanted = configured(config)
	n.server.connections = n.server.wanted
	n.patchStatus(pod, `{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}`)
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

// configure lets the running server read its configuration.
func (n *modelNode) configure(config *corev1.ConfigMap) {
	<-time.After(reload)
	if n.server.loaded != "" {
		n.server.loaded, n.server.wanted = configured(config)
	}
}

// configured returns what a configuration says of itself, and how many connections it wants.
func configured(config *corev1.ConfigMap) (of, connections string) {
	_, of, _ = strings.Cut(config.Data["postgresql.conf"], "einmal.configuration = ")
	_, connections, _ = strings.Cut(config.Data["parameters.conf"], "max_connections = ")
	return strings.Trim(of, "'\n"), connections
}

// Ask returns how full the volume is, and what the server says of its configuration.
func (n *modelNode) Ask(ctx context.Context, login postgres.Login) (postgres.State, error) {
	state := postgres.State{Used: n.used, Configuration: n.server.loaded, Refused: n.refused}
	if n.server.wanted != n.server.connections {
		state.Pending = "max_connections"
	}
	return state, n.Try(ctx, login)
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
