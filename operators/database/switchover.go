package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/primary"
)

const (
	// replay is how soon a standby is asked again that has not replayed everything, or cannot be promoted.
	replay = 200 * time.Millisecond
	// replayTimeout is how long a standby may need to replay what the former primary has written last.
	replayTimeout = 30 * time.Second
	// switchoverDelay is how soon the operator looks again whether a switchover can begin.
	switchoverDelay = 5 * time.Second
)

// moving returns the switchover that the operator carries out, or nil.
func moving(db *v1.Database) *v1.Switchover {
	if s := db.Status.Switchover; s != nil && s.Phase != v1.SwitchoverFailed {
		return s
	}
	return nil
}

// target returns the standby that is to become the primary, or nil: the one that the spec names, the first if the spec has no such server any more, or the
// successor of a primary that gets another version.
func (f findings) target(db *v1.Database) *standby {
	ordinal := f.first
	switch pod, reason := f.next(db); {
	case db.Spec.Primary != nil:
		ordinal = int(*db.Spec.Primary)
	case f.first >= int(db.Spec.Replicas):
		ordinal = 0
	case reason != "" && pod == f.pod:
		return f.successor(db)
	}
	for _, one := range f.standbys {
		if one.ordinal == ordinal {
			return &one
		}
	}
	return nil
}

// hindrance returns why a switchover to a standby cannot begin, or no problem. Then nothing has changed.
func (f findings) hindrance(db *v1.Database, target standby) problem {
	said, asked := f.said(target)
	pod, restarting := f.turn(db)
	if claim := f.vanishing(db); claim != nil {
		return vanishingProblem(db, claim)
	}
	switch {
	case db.Status.Switchover != nil && db.Status.Switchover.Phase == v1.SwitchoverFailed && db.Status.Switchover.To == target.name:
		return problem{"SwitchoverFailed", fmt.Sprintf("%s; the Pod %s remains the primary; to try again, set spec.primary to %d and then back",
			db.Status.Switchover.Message, manifest.Pod(db, f.first), f.first), true}
	case !asked || !f.available():
		return problem{"PrimaryNotReady", fmt.Sprintf("the Pod %s becomes the primary when the current primary can be reached", target.name), false}
	case restarting != "":
		return problem{"Restarting", fmt.Sprintf("the Pod %s becomes the primary when the Pod %s is restarted", target.name, pod.Name), false}
	case f.parameters.reloading(f.probe):
		return problem{"ApplyingParameters", fmt.Sprintf("the Pod %s becomes the primary when all servers have read their new parameters", target.name), false}
	case !isReady(target.pod) || !said.Streams():
		return problem{"StandbyNotStreaming", fmt.Sprintf("the Pod %s becomes the primary when it streams from the current one", target.name), false}
	case said.Lag >= smallLag:
		return problem{"StandbyBehind", fmt.Sprintf("the Pod %s becomes the primary when its lag is below 16Mi", target.name), false}
	}
	return problem{}
}

// switchOver begins a switchover if the spec asks for one and nothing prevents it. The primary writes a checkpoint first, so that it ends quickly.
func (d *databases) switchOver(ctx context.Context, c *change, found findings) error {
	target := found.target(c.Object)
	if target == nil {
		c.Object.Status.Switchover = nil
		return nil
	}
	against := found.hindrance(c.Object, *target)
	if against.person {
		return nil
	}
	if against.reason == "" {
		err := d.clients.postgresql.Checkpoint(ctx, direct(c.Object, found, found.pod.Name))
		if err != nil {
			return err
		}
		found.probe = d.probe(ctx, c, found)
		against = found.hindrance(c.Object, *target)
	}
	if against.reason != "" {
		return einmal.RequeueAfter(switchoverDelay)
	}
	if found.unlogged() {
		c.Event(einmal.EventWarning, "UnloggedTables", "unlogged tables have no rows after the switchover to the Pod %s, because standbys do not get them", target.name)
	}
	c.Object.Status.Switchover = &v1.Switchover{Phase: v1.SwitchoverStopping, From: found.pod.Name, To: target.name, UID: target.pod.UID}
	return einmal.RequeueAfter(recorded)
}

// handOver stops the former primary, and gives the next term to the standby when that has replayed everything.
func (d *databases) handOver(ctx context.Context, c *change, found *findings) error {
	moving := c.Object.Status.Switchover
	action, text := primary.Next(*moving, found.former(c.Object.Status.Primary), candidate(found.standby(moving.To)))
	switch action {
	case primary.Stop:
		if claim := found.vanishing(c.Object); claim != nil {
			return abandon(c, fmt.Sprintf("the claim %s is being deleted, and its volume would be when its Pod ends", claim.Name))
		}
		return removeKeeping(ctx, c, found.pod)
	case primary.Compare:
		return d.compare(ctx, c, found, text)
	case primary.Abandon:
		return abandon(c, text)
	case primary.Wait:
	}
	return nil
}

// compare asks the standby whether it has replayed the shutdown checkpoint of the former primary. If it has, it gets the next term.
func (d *databases) compare(ctx context.Context, c *change, found *findings, checkpoint string) error {
	moving, status := c.Object.Status.Switchover, &c.Object.Status
	replayed, err := d.clients.postgresql.Replayed(ctx, direct(c.Object, *found, moving.To), checkpoint)
	if replayed {
		status.Primary = primary.Promoted(*status.Primary, moving.To, moving.UID)
		moving.Phase = v1.SwitchoverPromoting
		return einmal.RequeueAfter(recorded)
	}
	found.comparing = einmal.Memo[findings](c).comparing
	if found.comparing.IsZero() {
		found.comparing = time.Now()
	}
	if time.Since(found.comparing) < replayTimeout {
		c.Log.Info("the standby has not replayed the shutdown checkpoint yet", "pod", moving.To, "error", err)
		return einmal.RequeueAfter(replay)
	}
	return abandon(c, fmt.Sprintf("the Pod %s has not replayed what the primary has written last", moving.To))
}

// abandon ends a switchover before the standby has got a term, so the former primary remains the primary.
func abandon(c *change, cause string) error {
	moving := c.Object.Status.Switchover
	moving.Phase, moving.Message = v1.SwitchoverFailed, cause
	c.Event(einmal.EventWarning, "SwitchoverFailed", "%s; the Pod %s remains the primary", cause, moving.From)
	return einmal.RequeueAfter(recorded)
}

// former returns what package primary needs to know of the former primary, or nil if its Pod is gone.
func (o observed) former(known *v1.Primary) *primary.Former {
	if o.pod == nil || known == nil || o.pod.UID != known.UID {
		return nil
	}
	former := &primary.Former{Terminating: o.pod.DeletionTimestamp != nil, Kept: slices.Contains(o.pod.Finalizers, manifest.KeepFinalizer)}
	if grace := o.pod.DeletionGracePeriodSeconds; former.Terminating && grace != nil && o.pod.Spec.NodeName != "" {
		former.Forced = *grace == 0 // The kubelet sets this too, but only after it has reported how the server has ended.
	}
	if ended := endOf(o.pod); former.Terminating && ended != nil {
		former.Ended, former.Said = true, ended.Message
	}
	return former
}

// endOf returns how the server in a Pod has ended, or nil.
func endOf(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, status := range pod.Status.ContainerStatuses {
		if manifest.IsServer(status.Name) {
			return status.State.Terminated
		}
	}
	return nil
}

// standby returns the Pod of a standby, or nil.
func (o observed) standby(name string) *corev1.Pod {
	for _, one := range o.standbys {
		if one.name == name {
			return one.pod
		}
	}
	return nil
}

// removeKeeping deletes a Pod, but keeps the object until removeKeepFinalizers is called.
func removeKeeping(ctx context.Context, c *change, pod *corev1.Pod) error {
	if !slices.Contains(pod.Finalizers, manifest.KeepFinalizer) {
		if err := setFinalizers(ctx, c, pod, append(slices.Clone(pod.Finalizers), manifest.KeepFinalizer)); err != nil {
			return err
		}
	}
	return remove(ctx, c, pod)
}

// removeKeepFinalizers removes the finalizer of a switchover from Pods.
func removeKeepFinalizers(ctx context.Context, c *change, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if !slices.Contains(pod.Finalizers, manifest.KeepFinalizer) {
			continue
		}
		left := slices.DeleteFunc(slices.Clone(pod.Finalizers), func(one string) bool { return one == manifest.KeepFinalizer })
		if err := setFinalizers(ctx, c, pod, left); err != nil {
			return err
		}
	}
	return nil
}

// setFinalizers sets the finalizers of exactly this version of a Pod: something else can have changed them too.
func setFinalizers(ctx context.Context, c *change, pod *corev1.Pod, finalizers []string) error {
	return patch(ctx, c, pod, "metadata", map[string]any{"finalizers": finalizers, "resourceVersion": pod.ResourceVersion})
}

// recovering reports whether the server that may accept writes is still a standby: a status that was lost does not know of the switchover any more.
func (f findings) recovering() bool {
	return f.probe != nil && f.probe.answered && f.probe.state.Recovering
}

// promote promotes the standby that has got the term. The other servers find their slots there.
func (d *databases) promote(ctx context.Context, c *change, found findings) error {
	if found.pod == nil || !isReady(found.pod) {
		return nil
	}
	var slots []string
	for _, one := range found.standbys {
		slots = append(slots, manifest.Slot(one.ordinal))
	}
	if err := d.clients.postgresql.Promote(ctx, direct(c.Object, found, found.pod.Name), slots); err != nil {
		c.Log.Warn("could not promote the standby yet", "pod", found.pod.Name, "error", err)
		return einmal.RequeueAfter(replay)
	}
	c.Event(einmal.EventNormal, "SwitchedOver", "the Pod %s is the primary now", found.pod.Name)
	c.Object.Status.Switchover = nil
	if givenUp(c.Object) != found.pod.UID {
		delete(c.Object.Annotations, failoverAnnotation)
	}
	return permit(ctx, c, found.observed)
}

// movingProblem says what a switchover does.
func movingProblem(moving v1.Switchover, found findings) problem {
	if moving.Phase == v1.SwitchoverStopping {
		if found.pod != nil && found.lost[found.pod.Spec.NodeName] != "" {
			return found.problemIn(found.pod)
		}
		return problem{"SwitchingOver", fmt.Sprintf("the Pod %s becomes the primary when the server in the Pod %s has ended", moving.To, moving.From), false}
	}
	switch {
	case found.pod == nil:
		return problem{"WaitingForPod", fmt.Sprintf("the Pod %s becomes the primary when it exists", moving.To), false}
	case !isReady(found.pod):
		return found.problemIn(found.pod)
	}
	return problem{"SwitchingOver", fmt.Sprintf("the Pod %s becomes the primary", moving.To), false}
}

// asRequested reports whether the primary is the server that the spec says.
func asRequested(db *v1.Database, found findings) metav1.Condition {
	const kind = v1.ConditionPrimaryAsRequested
	target := found.target(db)
	switch {
	case found.waits != "":
		return no(kind, "FailingOver", "no standby can become the primary yet: "+found.waits)
	case moving(db) == nil && found.latest != nil && givenUp(db) == found.latest.UID:
		return no(kind, "FailingOver", "a standby becomes the primary when one accepts connections")
	case moving(db) != nil:
		now := movingProblem(*db.Status.Switchover, found)
		return no(kind, now.reason, now.message)
	case target != nil:
		against := found.hindrance(db, *target)
		if against.reason == "" {
			against = problem{"SwitchingOver", fmt.Sprintf("the Pod %s becomes the primary", target.name), false}
		}
		return no(kind, against.reason, against.message)
	case db.Spec.Primary == nil:
		return yes(kind, "NotRequested", fmt.Sprintf("the Pod %s is the primary; spec.primary makes another one the primary", manifest.Pod(db, found.first)))
	}
	return yes(kind, "AsRequested", fmt.Sprintf("the Pod %s is the primary, as the spec says", manifest.Pod(db, found.first)))
}
