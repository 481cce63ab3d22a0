package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/primary"
)

const (
	// smallLag is the lag of a standby that the status does not mention, in bytes.
	smallLag = 16 << 20
	// largeLag is the lag with which a standby leaves the read-only Service, in bytes. It returns with smallLag.
	largeLag = 256 << 20
)

// standby is what exists of a server that is not the primary. The Pod and the claim are nil if they do not exist.
type standby struct {
	ordinal int
	// name is the name of the Pod.
	name  string
	pod   *corev1.Pod
	claim *corev1.PersistentVolumeClaim
	// foreign names the claim if it does not belong to the Database. Then the server gets no grant, and does not touch the volume. The field claim is nil.
	foreign error
}

// claims returns the claims that exist of the servers that the spec wants, that of the primary first.
func (o observed) claims(db *v1.Database) []*corev1.PersistentVolumeClaim {
	all := []*corev1.PersistentVolumeClaim{o.claim}
	for _, one := range o.wanted(db) {
		all = append(all, one.claim)
	}
	return slices.DeleteFunc(all, func(claim *corev1.PersistentVolumeClaim) bool { return claim == nil })
}

// vanishing returns a claim of a server that is being deleted, or nil. The cluster keeps it and its volume as long as a Pod uses it.
func (o observed) vanishing(db *v1.Database) *corev1.PersistentVolumeClaim {
	for _, claim := range o.claims(db) {
		if claim.DeletionTimestamp != nil {
			return claim
		}
	}
	return nil
}

// vanishingProblem explains how to keep the data of a claim that is being deleted. The deletion of a claim cannot be taken back.
func vanishingProblem(db *v1.Database, claim *corev1.PersistentVolumeClaim) problem {
	return problem{"ClaimDeleted", fmt.Sprintf("the claim %s is being deleted, and its volume with it when its Pod ends; so no Pod is restarted and the primary "+
		"does not change. To keep the volume: kubectl patch pv %s --type merge --patch '{\"spec\":{\"persistentVolumeReclaimPolicy\":\"Retain\"}}'. To keep the data, make "+
		"a backup. Then delete the Pod that uses the claim: kubectl delete pod --namespace %s %s", claim.Name, claim.Spec.VolumeName, db.Namespace,
		strings.TrimPrefix(claim.Name, manifest.Claim(""))), true}
}

// follow lets the other Pods be standbys, when there is a primary to follow.
func follow(ctx context.Context, c *change, seen observed) error {
	chosen := c.Object.Status.Primary
	if chosen == nil || c.Object.Status.DataVersion == "" {
		return nil
	}
	var failed error
	for _, one := range seen.standbys {
		if one.pod != nil && one.pod.UID != chosen.UID {
			failed = errors.Join(failed, demote(ctx, c, one))
		}
	}
	return failed
}

// demote lets a Pod be a standby, unless its claim belongs to others. The Service for writes does not lead to it. If it was the primary, its server can still accept writes, so it is deleted,
// and the next Pod is a standby.
func demote(ctx context.Context, c *change, one standby) error {
	pod := one.pod
	fields, ending := map[string]any{}, pod.DeletionTimestamp != nil
	wasPrimary := primary.Term(*candidate(pod)) > 0
	if grant := primary.StandbyGrant(pod.UID); !ending && !wasPrimary && one.foreign == nil && pod.Annotations[manifest.GrantAnnotation] != grant {
		fields["annotations"] = map[string]string{manifest.GrantAnnotation: grant}
	}
	if pod.Labels[manifest.RoleLabel] == manifest.RolePrimary {
		fields["labels"] = map[string]any{manifest.RoleLabel: nil}
	}
	var failed error
	if len(fields) > 0 {
		failed = patch(ctx, c, pod, "metadata", fields)
	}
	if wasPrimary && !ending {
		failed = errors.Join(failed, remove(ctx, c, pod))
	}
	return failed
}

// said returns what the primary says of a standby. It is nil if the primary says nothing of it. It reports false if the primary could not be asked.
func (f findings) said(one standby) (*engine.Standby, bool) {
	if f.probe == nil || !f.probe.answered {
		return nil, false
	}
	for i := range f.probe.state.Standbys {
		if f.probe.state.Standbys[i].Slot == manifest.Slot(one.ordinal) {
			return &f.probe.state.Standbys[i], true
		}
	}
	return nil, true
}

// instance returns the status of a standby. While the primary cannot be asked, what was known of a standby that runs stays.
func (f findings) instance(db *v1.Database, one standby) v1.Instance {
	now := v1.Instance{Pod: one.name, Role: v1.RoleStandby, State: v1.InstanceNotReady}
	said, asked := f.said(one)
	known := slices.IndexFunc(db.Status.Instances, func(of v1.Instance) bool { return of.Pod == one.name })
	switch {
	case !isReady(one.pod):
		if said != nil && said.Copying {
			now.State = v1.InstanceCopying
		}
		return now
	case !asked && known >= 0 && db.Status.Instances[known].Role == v1.RoleStandby:
		return db.Status.Instances[known]
	case !asked:
		now.State = v1.InstanceDisconnected
		return now
	case said == nil || said.Lost:
		now.State = v1.InstanceOutdated
		return now
	case said.State == "streaming":
		now.State = v1.InstanceStreaming
	case said.State == "":
		now.State = v1.InstanceDisconnected
	default:
		now.State = v1.InstanceCatchingUp
	}
	if said.Lag >= smallLag {
		now.Lag = resource.NewQuantity(1<<bits.Len64(uint64(said.Lag-1)), resource.BinarySI)
	}
	return now
}

// instances returns the status of all servers, in the order of their ordinals.
func (f findings) instances(db *v1.Database) []v1.Instance {
	first := v1.Instance{Pod: manifest.Pod(db, f.first), Role: v1.RolePrimary, State: v1.InstanceNotReady}
	if f.available() {
		first.State = v1.InstanceReady
	}
	all := []v1.Instance{first}
	for _, one := range f.wanted(db) {
		all = append(all, f.instance(db, one))
	}
	slices.SortFunc(all, func(a, b v1.Instance) int { return cmp.Compare(a.Pod, b.Pod) })
	return all
}

// wanted returns the standbys that the spec wants.
func (o observed) wanted(db *v1.Database) []standby {
	return slices.DeleteFunc(slices.Clone(o.standbys), func(one standby) bool { return one.ordinal >= int(db.Spec.Replicas) })
}

// selectStandbys lets the read-only Service select the standbys that have what the primary has. If the primary cannot be asked, nothing changes: then they
// have what there is.
func selectStandbys(ctx context.Context, c *change, found findings) error {
	var failed error
	for _, one := range found.standbys {
		said, asked := found.said(one)
		if !asked || one.pod == nil || one.pod.DeletionTimestamp != nil {
			continue
		}
		var role any
		has := one.pod.Labels[manifest.RoleLabel] == manifest.RoleStandby
		if said.Streams() && (said.Lag < smallLag || has && said.Lag < largeLag) {
			role = manifest.RoleStandby
		}
		if has != (role != nil) {
			failed = errors.Join(failed, patch(ctx, c, one.pod, "metadata", map[string]any{"labels": map[string]any{manifest.RoleLabel: role}}))
		}
	}
	return failed
}

// release drops the slots of standbys that the spec does not want any more, so that the primary keeps nothing for them, and of those that can never follow
// the primary again. Without a slot they are restarted, and copy the database.
func (d *databases) release(ctx context.Context, c *change, found findings) error {
	if found.probe == nil || !found.probe.answered {
		return nil
	}
	var failed error
	state := found.probe.state
	state.Standbys = slices.DeleteFunc(state.Standbys, func(said engine.Standby) bool {
		useful := slices.ContainsFunc(found.wanted(c.Object), func(one standby) bool {
			return manifest.Slot(one.ordinal) == said.Slot && !found.diverged(one)
		})
		if useful || said.State != "" {
			return false
		}
		err := d.clients.postgresql.Release(ctx, asMonitor(c.Object, found), said.Slot)
		failed = errors.Join(failed, err)
		return err == nil
	})
	return failed
}

// diverged reports whether a standby has what the primary does not have, as after a failover to another one.
func (f findings) diverged(one standby) bool {
	if one.pod == nil {
		return false
	}
	state := f.stateIn(one.pod)
	return state != nil && primary.Diverged(f.probe.state.Forks, state.Timeline, state.Received)
}

// standbyProblem returns the first problem of a standby.
func (f findings) standbyProblem(db *v1.Database) problem {
	var first problem
	for _, one := range f.wanted(db) {
		found := f.problemOf(db, one)
		if first.reason == "" || found.person && !first.person {
			first = found
		}
	}
	return first
}

// problemOf explains why a standby does not stream, or returns no problem.
func (f findings) problemOf(db *v1.Database, one standby) problem {
	if one.foreign != nil {
		return problem{objectRefused, one.foreign.Error(), true}
	}
	switch f.instance(db, one).State {
	case v1.InstanceReady, v1.InstanceStreaming:
	case v1.InstanceCopying:
		return problem{"Copying", fmt.Sprintf("the standby %s copies the primary", one.name), false}
	case v1.InstanceCatchingUp:
		return problem{"CatchingUp", fmt.Sprintf("the standby %s gets what it has missed", one.name), false}
	case v1.InstanceDisconnected:
		return problem{standbyDisconnected, fmt.Sprintf("the standby %s gets nothing from the primary, and is not in the Service %s; see its log",
			one.name, manifest.ReadOnlyService(db)), false}
	case v1.InstanceOutdated:
		return problem{"Outdated", fmt.Sprintf("the primary has deleted what the standby %s has missed: it copies the primary again", one.name), false}
	case v1.InstanceNotReady:
		if one.pod == nil {
			return problem{"WaitingForPod", "waiting for the Pod " + one.name, false}
		}
		return f.problemIn(one.pod)
	}
	return problem{}
}

// standbyDisconnected is the reason of a standby that has no connection to the primary.
const standbyDisconnected = "Disconnected"

// streaming reports whether all standbys get what the primary writes.
func streaming(db *v1.Database, found findings) metav1.Condition {
	const kind = v1.ConditionStandbysStreaming
	if problem := found.standbyProblem(db); problem.reason != "" {
		return no(kind, problem.reason, problem.message)
	}
	switch standbys := len(found.wanted(db)); standbys {
	case 0:
		return yes(kind, "NoStandbys", "the database has no standbys; set spec.replicas to have some")
	default:
		return yes(kind, "Streaming", fmt.Sprintf("standbys that get what the primary writes: %d", standbys))
	}
}

// tell sends an event if the reason of a condition is new.
func tell(c *change, before string, now metav1.Condition, severity einmal.EventType) {
	if before != now.Reason {
		c.Event(severity, now.Reason, "%s", now.Message)
	}
}
