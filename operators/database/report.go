package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/version"
)

// findings are what one reconciliation has found.
type findings struct {
	observed

	choice      version.Choice
	credentials credentials
	children    error
	growth      error
	parameters  parameters
	// probe is the last probe, or nil.
	probe *probe
	// waits is for what a failover waits that was asked for, or "".
	waits string
	// comparing is since when the standby of a switchover has not replayed everything, or zero.
	comparing time.Time
	// reported is when they were written into the status.
	reported time.Time
}

// report writes the findings into the status, keeps them for the next probe, and sends an event if the reason of the condition Ready is new.
func report(c *change, found findings) {
	db, status := c.Object, &c.Object.Status
	status.ObservedGeneration, status.Engine = db.Generation, db.Spec.Engine
	status.Replicas, status.ReadyReplicas = 0, 0
	if found.set != nil {
		status.Replicas = found.set.Status.Replicas
	}
	if found.pod != nil {
		status.Version, status.Image = found.pod.Annotations[manifest.VersionAnnotation], serverImage(found.pod.Spec)
	}
	if supported(db) {
		status.Selector = labels.FormatLabels(manifest.Selector(db))
		status.Endpoint = fmt.Sprintf("%s.%s.svc:%d", manifest.ReadWriteService(db), db.Namespace, manifest.Port(db))
		if manifest.HasStandbys(db) {
			status.ReadOnlyEndpoint = fmt.Sprintf("%s.%s.svc:%d", manifest.ReadOnlyService(db), db.Namespace, manifest.Port(db))
		}
		status.SecretName = manifest.AppSecret(db)
		status.Instances = found.instances(db)
	}
	for _, one := range status.Instances {
		if one.State == v1.InstanceReady || one.State == v1.InstanceStreaming {
			status.ReadyReplicas++
		}
	}
	status.Storage = storage(db, found)

	problem := diagnose(db, found)
	status.State = stateOf(db, problem)
	standby, stream := found.standbyProblem(db), streaming(db, found)
	degraded := standby
	if claim := found.vanishing(db); claim != nil {
		degraded = vanishingProblem(db, claim)
	}
	before, streamed := reasonOf(db, v1.ConditionReady), reasonOf(db, v1.ConditionStandbysStreaming)
	set(db, readiness(problem), availability(found, problem), degradation(db, problem, degraded), progress(db, found, problem), resizing(db, found), support(db))
	if supported(db) {
		set(db, versionSupport(found), parametersApplied(db, found))
	}
	if supported(db) && manifest.HasStandbys(db) {
		set(db, stream, asRequested(db, found))
	}
	if db.Spec.Replicas > 1 {
		tell(c, streamed, stream, standby.severity())
	}
	found.reported = time.Now()
	*einmal.Memo[findings](c) = found
	tell(c, before, readiness(problem), problem.severity())
}

// reasonOf returns the reason of a condition, or "".
func reasonOf(db *v1.Database, kind string) string {
	if condition := meta.FindStatusCondition(db.Status.Conditions, kind); condition != nil {
		return condition.Reason
	}
	return ""
}

// set sets conditions. The time of a condition changes only with its status.
func set(db *v1.Database, conditions ...metav1.Condition) {
	for _, condition := range conditions {
		condition.ObservedGeneration = db.Generation
		meta.SetStatusCondition(&db.Status.Conditions, condition)
	}
}

func yes(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func no(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func stateOf(db *v1.Database, problem problem) v1.State {
	switch {
	case problem.reason == "":
		return v1.Ready
	case problem.person:
		return v1.Blocked
	case db.Status.DataVersion != "":
		return v1.Degraded
	}
	return v1.Provisioning
}

func readiness(problem problem) metav1.Condition {
	if problem.reason != "" {
		return no(v1.ConditionReady, problem.reason, problem.message)
	}
	return yes(v1.ConditionReady, "DatabaseReady", "the server accepts connections")
}

func availability(found findings, problem problem) metav1.Condition {
	if found.available() {
		return yes(v1.ConditionAvailable, "AcceptsConnections", "the server accepts connections")
	}
	return no(v1.ConditionAvailable, "NotReady", problem.message)
}

// degradation reports whether something is wrong with a database that was ready before, or with a standby. The status says how full its volumes are.
func degradation(db *v1.Database, problem, standby problem) metav1.Condition {
	switch volume := db.Status.Storage; {
	case db.Status.DataVersion != "" && problem.reason != "":
		return yes(v1.ConditionDegraded, problem.reason, problem.message)
	case standby.person || standby.reason == standbyDisconnected:
		return yes(v1.ConditionDegraded, standby.reason, standby.message)
	case volume != nil && volume.UsedPercent != nil && *volume.UsedPercent >= almostFull:
		return yes(v1.ConditionDegraded, "VolumeAlmostFull", fmt.Sprintf("a volume is %d %% full; raise spec.storage", *volume.UsedPercent))
	}
	return no(v1.ConditionDegraded, "AsExpected", "nothing is wrong with the database")
}

// progress reports whether time alone can help.
func progress(db *v1.Database, found findings, problem problem) metav1.Condition {
	pod, restarting := found.turn(db)
	standby := found.standbyProblem(db)
	switch {
	case problem.person:
		return no(v1.ConditionProgressing, problem.reason, problem.message)
	case problem.reason != "":
		return yes(v1.ConditionProgressing, problem.reason, problem.message)
	case found.parameters.reloading(found.probe):
		return yes(v1.ConditionProgressing, "ApplyingParameters", "the server reads its new parameters")
	case restarting != "":
		return yes(v1.ConditionProgressing, "Restarting", fmt.Sprintf("the server in the Pod %s is restarted, because %s", pod.Name, restarting))
	case standby.person:
		return no(v1.ConditionProgressing, standby.reason, standby.message)
	case standby.reason != "":
		return yes(v1.ConditionProgressing, standby.reason, standby.message)
	case found.silent(db) != nil:
		return yes(v1.ConditionProgressing, "StandbyNotAnswering", fmt.Sprintf("the server in the Pod %s is restarted when the standby %s answers the operator, "+
			"because a standby that needs a restart comes first; if it does not answer, delete its Pod", manifest.Pod(db, found.first), found.silent(db).name))
	case found.target(db) != nil:
		requested := asRequested(db, found)
		if found.hindrance(db, *found.target(db)).person {
			return no(v1.ConditionProgressing, requested.Reason, requested.Message)
		}
		return yes(v1.ConditionProgressing, requested.Reason, requested.Message)
	}
	for _, pod := range found.pods() {
		if found.restartPending(pod) {
			return no(v1.ConditionProgressing, "RestartPending",
				fmt.Sprintf("the server runs with an older spec: delete the Pod %s, which restarts it with the new one", pod.Name))
		}
	}
	return no(v1.ConditionProgressing, "Complete", "everything is as the spec says")
}

// resizing reports whether a volume grows.
func resizing(db *v1.Database, found findings) metav1.Condition {
	if found.claim == nil {
		return no(v1.ConditionStorageResizing, "NoVolume", "there is no volume yet")
	}
	if found.growth != nil {
		return no(v1.ConditionStorageResizing, "Refused", found.growth.Error())
	}
	for _, claim := range found.claims(db) {
		if actual, bound := claim.Status.Capacity[corev1.ResourceStorage]; bound && actual.Cmp(db.Spec.Storage) < 0 {
			return yes(v1.ConditionStorageResizing, "Growing", fmt.Sprintf("the volume of the claim %s grows from %s to %s", claim.Name, &actual, &db.Spec.Storage))
		}
	}
	return no(v1.ConditionStorageResizing, "AsRequested", "each volume has at least the size that the spec says")
}

// support reports whether the operator can run the engine.
func support(db *v1.Database) metav1.Condition {
	if !supported(db) {
		return no(v1.ConditionEngineSupported, "NotSupported", engineMessage(db))
	}
	return yes(v1.ConditionEngineSupported, "Supported", "the operator runs this engine")
}

// versionSupport reports whether the operator can run the version with the data of the volume.
func versionSupport(found findings) metav1.Condition {
	if found.choice.Problem != "" {
		return no(v1.ConditionVersionSupported, found.choice.Reason, found.choice.Problem)
	}
	return yes(v1.ConditionVersionSupported, "Supported", "the operator runs this version")
}

// storage returns the size of the volume, or nil if there is no claim.
func storage(db *v1.Database, found findings) *v1.StorageStatus {
	if found.claim == nil {
		return nil
	}
	reported := &v1.StorageStatus{Requested: found.claim.Spec.Resources.Requests.Storage().DeepCopy()}
	if db.Status.Storage != nil {
		reported.UsedPercent = db.Status.Storage.UsedPercent
	}
	if found.probe != nil && found.probe.state != nil {
		used := found.probe.state.Used
		for _, state := range found.probe.standbys {
			used = max(used, state.Used)
		}
		reported.UsedPercent = steady(reported.UsedPercent, used)
	}
	if actual, bound := found.claim.Status.Capacity[corev1.ResourceStorage]; bound {
		reported.Actual = &actual
	}
	return reported
}

// severity returns the type of the event about the problem.
func (p problem) severity() einmal.EventType {
	if p.person {
		return einmal.EventWarning
	}
	return einmal.EventNormal
}
