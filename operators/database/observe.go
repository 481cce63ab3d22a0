package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/primary"
)

// observed is what exists of a Database: set, and the pod and the claim of the primary. Each is nil if its object does not exist.
type observed struct {
	set *appsv1.StatefulSet
	// latest is the Pod that got the last term, or nil, and first the ordinal of the primary.
	latest *v1.Primary
	first  int
	pod    *corev1.Pod
	claim  *corev1.PersistentVolumeClaim
	// standbys are the other servers, in the order of their ordinals.
	standbys []standby
	// lost says of nodes why they are not ready, by their names: see withNodes.
	lost map[string]string
	// foreign names an object that does not belong to the Database and has the name of one that does. It is nil if there is none.
	foreign error
	// leaving reports whether the server of a deleted Database of the same name has not ended yet.
	leaving bool
}

// observe reads the objects from the API server: decisions about data must not depend on a cache.
func observe(ctx context.Context, c *change) (observed, error) {
	var found observed
	var err error
	if found.set, err = get(ctx, c, c.Object.Name, &appsv1.StatefulSet{}); err != nil {
		return found, err
	}
	found = found.withoutOthers(c.Object, c.CheckOwner)
	if found, err = found.withServers(ctx, c); err != nil {
		return found, err
	}
	return found.withPrimary(c.Object).withNodes(ctx, c)
}

// withServers adds the Pods and claims of all servers, also of those that the StatefulSet has not ended yet.
func (o observed) withServers(ctx context.Context, c *change) (observed, error) {
	looked := o.servers(c.Object)
	if c.Object.Status.Primary == nil {
		looked = manifest.MostReplicas // The status can be lost, and any server can be the primary.
	}
	for ordinal := range looked {
		one := standby{ordinal: ordinal, name: manifest.Pod(c.Object, ordinal)}
		var err error
		if one.claim, err = get(ctx, c, manifest.Claim(one.name), &corev1.PersistentVolumeClaim{}); err != nil {
			return o, err
		}
		if one.claim != nil && isForeign(c.Object, one.claim) {
			one.foreign, one.claim = foreignClaim(c.Object, one.claim), nil
		}
		if one.pod, err = get(ctx, c, one.name, &corev1.Pod{}); err != nil {
			return o, err
		}
		if one.pod != nil && !o.owns(c.Object, one.pod) {
			one.pod = nil
		}
		o.standbys = append(o.standbys, one)
	}
	return o, nil
}

// servers returns how many servers there can be, as far as the status knows.
func (o observed) servers(db *v1.Database) int {
	servers := int(db.Spec.Replicas)
	if db.Status.Primary != nil {
		servers = max(servers, manifest.Ordinal(db, db.Status.Primary.Pod)+1)
	}
	if o.set != nil {
		servers = max(servers, int(o.set.Status.Replicas))
	}
	if ongoing := db.Status.Switchover; ongoing != nil { // The Pod of a former primary can be too many for the spec, and is kept.
		servers = max(servers, manifest.Ordinal(db, ongoing.From)+1, manifest.Ordinal(db, ongoing.To)+1)
	}
	return servers
}

// needed returns how many servers the Database must have: those of the spec, and the primary or the standby that becomes it. A new server must not get a
// claim of others, so there are no more than before if there is such a claim.
func (o observed) needed(db *v1.Database) int32 {
	least, has := o.first+1, 0
	if moving := moving(db); moving != nil {
		least = max(least, manifest.Ordinal(db, moving.To)+1)
	}
	if o.set != nil {
		has = int(*o.set.Spec.Replicas)
	}
	for _, one := range o.standbys {
		if one.pod != nil && one.foreign == nil { // The StatefulSet can be away for a moment.
			has = max(has, one.ordinal+1)
		}
	}
	wanted := int(db.Spec.Replicas)
	for _, one := range o.standbys {
		if one.foreign != nil && one.ordinal < wanted {
			wanted = max(one.ordinal, min(wanted, has))
		}
	}
	return int32(max(wanted, least)) //nolint:gosec // At most MostReplicas.
}

// withPrimary takes the server that got the last term for the primary. The first one is it before any server has got one.
func (o observed) withPrimary(db *v1.Database) observed {
	var holders []primary.Holder
	for _, one := range o.standbys {
		if known := db.Status.Primary; one.pod != nil && known != nil && one.pod.UID == known.UID {
			holders = nil // The status is true: a Pod that was the primary before does not exist any more.
			break
		}
		if one.pod != nil {
			holders = append(holders, primary.Holder{Pod: one.name, Term: primary.Term(*candidate(one.pod))})
		}
		if one.claim != nil {
			term, _ := strconv.ParseInt(one.claim.Annotations[manifest.TermAnnotation], 10, 64)
			holders = append(holders, primary.Holder{Pod: one.name, Term: term})
		}
	}
	o.latest = primary.Latest(db.Status.Primary, holders)
	if o.latest != nil {
		o.first = manifest.Ordinal(db, o.latest.Pod)
	}
	if o.first < len(o.standbys) {
		o.pod, o.claim = o.standbys[o.first].pod, o.standbys[o.first].claim
		o.foreign = orElse(o.foreign, o.standbys[o.first].foreign)
		o.standbys = slices.Delete(o.standbys, o.first, o.first+1)
	}
	if db.Status.Primary == nil {
		o.standbys = o.standbys[:min(len(o.standbys), max(0, int(db.Spec.Replicas)-1))]
	}
	return o
}

// withoutOthers leaves out the StatefulSet if it does not belong to the Database, so that it is not touched. It belongs to the Database if check, which is
// Change.CheckOwner, returns no error.
func (o observed) withoutOthers(db *v1.Database, check func(client.Object) error) observed {
	if o.set == nil || metav1.IsControlledBy(o.set, db) {
		return o
	}
	controller := metav1.GetControllerOf(o.set)
	if controller != nil && controller.APIVersion == v1.GroupVersion.String() && controller.Kind == "Database" && controller.Name == db.Name {
		o.leaving = true // The garbage collector deletes it.
	} else if o.foreign = check(o.set); o.foreign == nil {
		return o // It was restored from a backup, and Apply takes it back.
	}
	o.set = nil
	return o
}

// isForeign reports whether a claim does not belong to the Database.
func isForeign(db *v1.Database, claim *corev1.PersistentVolumeClaim) bool {
	return claim.Labels[manifest.NameLabel] != db.Name && claim.Annotations[manifest.DataAnnotation] == ""
}

// foreignClaim says what to do about a claim that does not belong to the Database.
func foreignClaim(db *v1.Database, claim *corev1.PersistentVolumeClaim) error {
	return fmt.Errorf("the PersistentVolumeClaim %s exists and does not belong to this Database: delete it, or choose another name for the Database; "+
		"if its volume holds the data of this Database: kubectl label --namespace %s persistentvolumeclaim %s %s=%s",
		claim.Name, db.Namespace, claim.Name, manifest.NameLabel, db.Name)
}

// owns reports whether a Pod is one of the Database, and not something else with its name. If the StatefulSet was deleted, its Pods have no controller, or
// still the deleted one while they end. Then only what the operator has written says whose they are.
func (o observed) owns(db *v1.Database, pod *corev1.Pod) bool {
	if o.set != nil && metav1.IsControlledBy(pod, o.set) {
		return true
	}
	if of := metav1.GetControllerOf(pod); of != nil && (of.Kind != "StatefulSet" || of.Name != db.Name) {
		return false
	}
	return db.Status.Primary != nil && db.Status.Primary.UID == pod.UID || pod.Annotations[manifest.GrantAnnotation] == primary.StandbyGrant(pod.UID) ||
		slices.Contains(pod.Finalizers, manifest.KeepFinalizer)
}

// get returns an object of the Database's namespace, or nil if it does not exist.
func get[T client.Object](ctx context.Context, c *change, name string, into T) (T, error) {
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Object.Namespace, Name: name}, into)
	if err == nil {
		return into, nil
	}
	var none T
	if client.IgnoreNotFound(err) == nil {
		return none, nil
	}
	return none, fmt.Errorf("read %s %s: %w", kindOf(into), name, err)
}

// kindOf returns the kind of an object, for messages.
func kindOf(object client.Object) string {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	text := fmt.Sprintf("%T", object)
	return text[strings.LastIndex(text, ".")+1:]
}

// pods returns the Pods that exist, that of the primary first.
func (o observed) pods() []*corev1.Pod {
	all := []*corev1.Pod{o.pod}
	for _, one := range o.standbys {
		all = append(all, one.pod)
	}
	return slices.DeleteFunc(all, func(pod *corev1.Pod) bool { return pod == nil })
}

// dataVersion returns the major version of the data in the volume, or "" if there is none as far as the operator knows.
func (o observed) dataVersion(db *v1.Database) string {
	if db.Status.DataVersion != "" {
		return db.Status.DataVersion
	}
	if mark := o.mark(); mark != manifest.DataCreating {
		return mark
	}
	return ""
}

// deployed returns the version that the StatefulSet runs, or the last one that ran.
func (o observed) deployed(db *v1.Database) string {
	if o.set != nil {
		return o.set.Spec.Template.Annotations[manifest.VersionAnnotation]
	}
	return db.Status.Version
}

// serverImage returns the image of the server's container.
func serverImage(spec corev1.PodSpec) string {
	for _, container := range spec.Containers {
		if manifest.IsServer(container.Name) {
			return container.Image
		}
	}
	return ""
}

// restartPending reports whether a Pod has not got what the StatefulSet says now: with the strategy OnDelete, its next Pod will.
func (o observed) restartPending(pod *corev1.Pod) bool {
	if o.set == nil || pod == nil || o.set.Status.ObservedGeneration != o.set.Generation {
		return false
	}
	has, wanted := pod.Labels[appsv1.ControllerRevisionHashLabelKey], o.set.Status.UpdateRevision
	return has != "" && wanted != "" && has != wanted
}

// mark returns what the claim says of the data in its volume.
func (o observed) mark() string {
	if o.claim == nil {
		return ""
	}
	return o.claim.Annotations[manifest.DataAnnotation]
}

// candidate returns a Pod for the decisions of package primary. The Pod is nil if it does not exist.
func candidate(pod *corev1.Pod) *primary.Pod {
	if pod == nil {
		return nil
	}
	return &primary.Pod{Name: pod.Name, UID: pod.UID, Terminating: pod.DeletionTimestamp != nil, Grant: pod.Annotations[manifest.GrantAnnotation]}
}

// hasGrown reports whether the volume is larger than the status says.
func (o observed) hasGrown(db *v1.Database) bool {
	if o.claim == nil || db.Status.Storage == nil || db.Status.Storage.Actual == nil {
		return false
	}
	return o.claim.Status.Capacity.Storage().Cmp(*db.Status.Storage.Actual) > 0
}

// available reports whether the server accepts connections through the Service.
func (o observed) available() bool {
	return isReady(o.pod) && o.pod.Labels[manifest.RoleLabel] == manifest.RolePrimary
}

// isReady reports whether the server in a Pod accepts connections. The Pod is nil if it does not exist.
func isReady(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// template returns the size in the claim template of the StatefulSet, which exists.
func (o observed) template() *resource.Quantity {
	for _, template := range o.set.Spec.VolumeClaimTemplates {
		return template.Spec.Resources.Requests.Storage()
	}
	return &resource.Quantity{}
}
