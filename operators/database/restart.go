package main

import (
	"context"
	"fmt"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// restart deletes the Pod if what the spec says takes effect only after a restart: another minor version, another image, or some parameters. The next Pod
// has it.
func restart(ctx context.Context, c *change, found findings) error {
	reason := found.restartReason(c.Object)
	if reason == "" {
		return nil
	}
	c.Event(einmal.EventNormal, "Restarting", "the server is restarted, because %s", reason)
	return remove(ctx, c, found.pod)
}

// restartReason returns why the server must be restarted now, or "". A server that refuses its parameters would not start again.
func (f findings) restartReason(db *v1.Database) string {
	if f.pod == nil || f.pod.DeletionTimestamp != nil {
		return ""
	}
	asked := f.probe != nil && f.probe.state != nil && f.probe.pod == f.pod.UID
	switch {
	case asked && f.probe.state.Refused != "":
		return ""
	case f.outdated(db):
		return fmt.Sprintf("the spec says version %s and the image %s", f.set.Spec.Template.Annotations[manifest.VersionAnnotation], serverImage(f.set.Spec.Template.Spec))
	case asked && f.probe.state.Pending != "" && !f.parameters.reloading(f.probe):
		return "that is what the changed parameters " + f.probe.state.Pending + " need"
	}
	return ""
}

// outdated reports whether the Pod has another version or image than the spec says. An image that has changed with the operator's flag --image does not
// count: it would restart all servers at once. It waits for the next Pod, unless this one needs a person.
func (f findings) outdated(db *v1.Database) bool {
	if !f.restartPending() {
		return false
	}
	has, wants := f.image(), serverImage(f.set.Spec.Template.Spec)
	return f.pod.Annotations[manifest.VersionAnnotation] != f.set.Spec.Template.Annotations[manifest.VersionAnnotation] ||
		has != wants && (db.Spec.Image == wants || !f.available() && podProblem(db, f.pod).person)
}
