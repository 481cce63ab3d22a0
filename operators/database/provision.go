package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/primary"
)

// recorded is how soon the handler continues after the API server has stored a decision.
const recorded = 100 * time.Millisecond

// provision brings the objects of a Database to the desired state. It depends on no memory: what must not be decided twice is in the status of the
// Database and on the claim before it takes effect.
func (d *databases) provision(ctx context.Context, c *change) error {
	seen, err := observe(ctx, c)
	if err != nil {
		return err
	}
	data := seen.dataVersion(c.Object)
	found := findings{observed: seen, choice: versionsOf(c.Object).Choose(c.Object.Spec.Version, seen.deployed(c.Object), data)}
	if !supported(c.Object) || found.choice.Version == "" {
		report(c, found)
		return nil
	}
	c.Object.Status.DataVersion = data
	if seen.foreign != nil || seen.leaving {
		report(c, found)
		return orElse(seen.foreign, einmal.RequeueAfter(stopping))
	}
	known := 0
	if data != "" || seen.mark() != "" {
		known = 1 // The database was created with the first password.
	}
	found.credentials = currentCredentials(ctx, c, known)
	if found.credentials.passes != nil {
		return found.credentials.passes // It says nothing about the database.
	}
	unread := found.credentials.err
	defer func() { report(c, found) }()
	if unread != nil && known == 0 {
		return unlessBlocked(unread)
	}
	if found.parameters, err = chooseParameters(ctx, c); err != nil {
		return err
	}
	applied, grown := d.apply(ctx, c, found), grow(ctx, c, seen)
	found.children, found.growth = refusal(applied), refusal(grown)
	err = errors.Join(unlessBlocked(unread), applied, grown)
	return orElse(d.serve(ctx, c, &found, err), seen.lookAgain())
}

// serve decides which Pod may accept writes and which are standbys, and does what the servers need then. If objects could not be applied, it stops no
// server, because the next one might not start. It returns the error about them.
func (d *databases) serve(ctx context.Context, c *change, found *findings, unapplied error) error {
	if decided, pending := d.decide(ctx, c, found); !decided {
		return orElse(pending, unapplied)
	}
	if done := reportRestored(c, found.observed); done != nil {
		return orElse(permit(ctx, c, found.observed), done)
	}
	err := errors.Join(permit(ctx, c, found.observed), follow(ctx, c, found.observed), removeKeepFinalizers(ctx, c, found.pods()))
	if err == nil && moving(c.Object) != nil {
		return orElse(d.promote(ctx, c, *found), unapplied)
	}
	if err = errors.Join(unapplied, err); err != nil {
		return err
	}
	found.probe = d.probeNew(ctx, c, *found)
	if found.recovering() {
		found.probe = nil
		return d.promote(ctx, c, *found)
	}
	err = errors.Join(d.act(ctx, c, *found), startAgain(ctx, c, found.observed))
	return orElse(orElse(err, d.switchOver(ctx, c, *found)), found.wait(c.Object))
}

// decide decides which Pod may accept writes. It reports false if the status must be stored first, or if a switchover waits for the former primary.
func (d *databases) decide(ctx context.Context, c *change, found *findings) (bool, error) {
	if failing, err := d.failOver(ctx, c, found); failing {
		return false, err
	}
	if s := moving(c.Object); s != nil && s.Phase == v1.SwitchoverStopping {
		return false, d.handOver(ctx, c, found)
	}
	chosen := primary.Choose(found.latest, candidate(found.pod))
	if known := c.Object.Status.Primary; chosen == known || chosen == nil || chosen.UID == "" {
		return true, nil
	}
	c.Object.Status.Primary = chosen
	return false, einmal.RequeueAfter(recorded)
}

// orElse returns the error, or else another one.
func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// refusal returns those of joined errors that do not pass by themselves: the API server refuses an object, or it belongs to something else. The others
// are retried, and the status does not tell of them.
func refusal(err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var refused error
		for _, one := range several.Unwrap() {
			refused = errors.Join(refused, refusal(one))
		}
		return refused
	}
	var unreachable *url.Error
	passes := errors.As(err, &unreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
	if passes {
		return nil
	}
	return err
}

// apply applies all objects of the Database. One that is refused keeps no other from being applied.
func (d *databases) apply(ctx context.Context, c *change, found findings) error {
	running, seen := found.choice.Version, found.observed
	settings := manifest.Settings{Images: manifest.Images{Server: d.images.ofServers(c.Object, running)}, Version: running, Major: versionsOf(c.Object).Major(running), Replicas: seen.needed(c.Object), Parameters: found.parameters.lines, Template: c.Object.Spec.Storage, Extensions: d.extensions}
	if settings.Restore = restoring(c.Object); settings.Restore != nil {
		settings.Replicas = 1 // Only one node can use the volume of the backup, and one server fetches it from a bucket.
		if settings.Restore.S3 != nil {
			var err error
			if settings.Images.Operator, err = d.images.ofOperator(ctx, c); err != nil {
				return err
			}
		}
	}
	if seen.set != nil {
		settings.Template = *seen.template()
	}
	var refused error
	for _, child := range manifest.Children(c.Object, settings) {
		if _, isSet := child.(*appsv1.StatefulSet); isSet && seen.set != nil && seen.set.DeletionTimestamp != nil {
			continue // The handler is called again when it is gone.
		}
		refused = errors.Join(refused, c.Apply(ctx, child))
	}
	return refused
}

// grow lets the claims request what the spec says. A volume that is larger stays as it is. When the volumes have grown, it deletes the StatefulSet, whose
// claim template cannot be changed, without its Pods. The next call creates another one, which adopts the Pods.
func grow(ctx context.Context, c *change, seen observed) error {
	wanted := c.Object.Spec.Storage
	var failed error
	growing := seen.claim == nil
	for _, claim := range seen.claims(c.Object) {
		growing = growing || claim.Status.Capacity.Storage().Cmp(wanted) < 0
		if claim.Spec.Resources.Requests.Storage().Cmp(wanted) < 0 {
			failed = errors.Join(failed, patch(ctx, c, claim, "spec", map[string]any{
				"resources": map[string]any{"requests": map[string]any{"storage": wanted.String()}},
			}))
		}
	}
	if failed != nil || growing || seen.set == nil || seen.set.DeletionTimestamp != nil || seen.template().Cmp(wanted) >= 0 {
		return failed
	}
	return remove(ctx, c, seen.set, client.PropagationPolicy(metav1.DeletePropagationOrphan))
}

// startAgain deletes the Pod of a server that has ended because its volume was full, when the volume has grown. The kubelet starts the server too, but
// it waits longer after each failure, up to five minutes.
func startAgain(ctx context.Context, c *change, seen observed) error {
	if seen.pod == nil || seen.vanishing(c.Object) != nil || !seen.hasGrown(c.Object) || podProblem(seen.pod).reason != volumeFull {
		return nil
	}
	c.Event(einmal.EventNormal, "Restarting", "the volume has grown, and the server is started again")
	return remove(ctx, c, seen.pod)
}

// permit lets the chosen Pod accept writes, and keeps on the claim which term it has and whether its volume holds a database. The Service for writes leads
// to a standby that becomes the primary only when it accepts writes.
func permit(ctx context.Context, c *change, seen observed) error {
	chosen, data := c.Object.Status.Primary, c.Object.Status.DataVersion
	if seen.pod == nil || seen.claim == nil || chosen == nil || chosen.UID != seen.pod.UID || seen.pod.DeletionTimestamp != nil {
		return nil
	}
	mark := data
	switch {
	case seen.available() || isRestored(seen.pod):
		mark = versionsOf(c.Object).Major(seen.pod.Annotations[manifest.VersionAnnotation])
		c.Object.Status.DataVersion = mark
	case data == "":
		mark = manifest.DataCreating
	}
	if term := strconv.FormatInt(chosen.Term, 10); mark != seen.mark() || term != seen.claim.Annotations[manifest.TermAnnotation] {
		marks := map[string]string{manifest.DataAnnotation: mark, manifest.TermAnnotation: term}
		if err := patch(ctx, c, seen.claim, "metadata", map[string]any{"annotations": marks}); err != nil {
			return err
		}
	}
	role, grant := manifest.RolePrimary, primary.Grant(*chosen)
	switch {
	case moving(c.Object) != nil:
		role, grant = seen.pod.Labels[manifest.RoleLabel], primary.PromotionGrant(*chosen)
	case c.Object.Status.DataVersion == "":
		grant = primary.InitialGrant(*chosen)
	}
	if seen.pod.Annotations[manifest.GrantAnnotation] == grant && seen.pod.Labels[manifest.RoleLabel] == role {
		return nil
	}
	return patch(ctx, c, seen.pod, "metadata", map[string]any{
		"annotations": map[string]string{manifest.GrantAnnotation: grant}, "labels": map[string]string{manifest.RoleLabel: role},
	})
}

// patch changes the metadata or the spec of exactly this object: the API server refuses the uid of another one.
func patch(ctx context.Context, c *change, object client.Object, section string, fields map[string]any) error {
	merge := map[string]map[string]any{section: fields}
	if merge["metadata"] == nil {
		merge["metadata"] = map[string]any{}
	}
	merge["metadata"]["uid"] = object.GetUID()
	text, err := json.Marshal(merge)
	if err != nil {
		return fmt.Errorf("patch %s %s: %w", kindOf(object), object.GetName(), err)
	}
	if err := c.Client.Patch(ctx, object, client.RawPatch("application/merge-patch+json", text)); err != nil {
		return fmt.Errorf("patch %s %s: %w", kindOf(object), object.GetName(), err)
	}
	return nil
}
