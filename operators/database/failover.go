package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/primary"
)

// failoverAnnotation is the annotation of a Database with which a person gives up the primary. Its value is the uid of the Pod of the primary. The operator
// removes it when a standby is the primary, and when it refuses the request.
const failoverAnnotation = "database.einmal.dev/failover-from"

// givenUp returns the uid of the Pod that a person gives up, or "".
func givenUp(db *v1.Database) types.UID { return types.UID(db.Annotations[failoverAnnotation]) }

// failOver makes the standby with most data the primary, if a person asks for it. It reports false if nothing is asked for, or if no standby accepts
// connections. Then the operator goes on as before, because the primary can still come back.
func (d *databases) failOver(ctx context.Context, c *change, found *findings) (bool, error) {
	asked := givenUp(c.Object)
	// A status that was edited can have a promotion and no primary. The request is refused then.
	if s := moving(c.Object); asked == "" || s != nil && s.Phase == v1.SwitchoverPromoting && found.latest != nil && asked != found.latest.UID {
		return false, nil // A promotion removes the annotation.
	}
	if refused := primary.Refused(asked, found.latest, isReady(found.pod)); refused != "" {
		c.Event(einmal.EventWarning, "FailoverRefused", "%s", refused)
		delete(c.Object.Annotations, failoverAnnotation)
		return false, nil
	}
	candidates, waits, err := d.candidates(ctx, c, *found)
	if waits != "" {
		c.Log.Warn("the failover waits", "for", waits, "error", err)
		found.waits = waits
		return true, einmal.RequeueAfter(switchoverDelay)
	}
	if len(candidates) == 0 {
		return false, nil
	}
	former, best := found.latest, primary.MostAdvanced(candidates)
	c.Event(einmal.EventWarning, "FailingOver", "the Pod %s becomes the primary, without what only the Pod %s has", best.Pod, former.Pod)
	c.Object.Status.Primary = primary.Promoted(*former, best.Pod, best.UID)
	c.Object.Status.Switchover = &v1.Switchover{Phase: v1.SwitchoverPromoting, From: former.Pod, To: best.Pod, UID: best.UID}
	return true, einmal.RequeueAfter(recorded)
}

// candidates returns the standbys that accept connections. It also returns for what the failover must wait: for one that does not answer, because it can have
// more than the others, or for one that still gets something from the primary, because its server runs, and what apps write there would be lost.
func (d *databases) candidates(ctx context.Context, c *change, found findings) (all []primary.Candidate, waits string, err error) {
	if found.credentials.monitor.Generation == 0 {
		return nil, fmt.Sprintf("the operator needs the password in the Secret %s to ask the standbys; restore it", manifest.MonitorSecret(c.Object)), found.credentials.err
	}
	for _, one := range found.wanted(c.Object) {
		if !isReady(one.pod) {
			continue
		}
		state, err := d.askBriefly(ctx, c.Object, found, one)
		switch {
		case err != nil:
			return nil, fmt.Sprintf("the standby %s does not answer, and can have more than the others; to go on without it, delete its Pod", one.name), err
		case state.Receiving:
			return nil, fmt.Sprintf("the standby %s still gets what the server in the Pod %s writes; delete that Pod, or switch off its node",
				one.name, found.latest.Pod), nil
		case !state.Recovering:
			return nil, fmt.Sprintf("the server in the Pod %s is not a standby", one.name), nil
		}
		all = append(all, primary.Candidate{Pod: one.name, UID: one.pod.UID, Timeline: state.Timeline, Received: state.Received})
	}
	return all, "", nil
}

// withFailover adds to a problem of the primary that a standby can replace it, where waiting may not help.
func withFailover(db *v1.Database, found findings, of problem) problem {
	known := db.Status.Primary
	if !isLoss(of) || db.Status.DataVersion == "" || known == nil || givenUp(db) == known.UID || len(found.readyStandbys()) == 0 {
		return of
	}
	message := strings.TrimSuffix(of.message, ".") // The messages of the scheduler are sentences.
	of.message = fmt.Sprintf("%s; to make a standby the primary, without what only the Pod %s has: kubectl annotate --namespace %s database %s %s=%s",
		message, known.Pod, db.Namespace, db.Name, failoverAnnotation, known.UID)
	return of
}

// isLoss reports whether waiting may not help against a problem of the primary.
func isLoss(of problem) bool {
	return slices.Contains([]string{primaryNodeLost, "DataMissing", "NotThePrimary", "Unschedulable"}, of.reason)
}

// replaceable reports whether the primary is lost and a standby can replace it. That matters more than the password of apps.
func (f findings) replaceable(db *v1.Database) bool {
	return db.Status.DataVersion != "" && !f.available() && f.pod != nil && isLoss(f.problemIn(f.pod)) && len(f.readyStandbys()) > 0
}
