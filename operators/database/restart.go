package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// restart deletes a Pod if what the spec says takes effect only after a restart: another minor version, another image, or some parameters. The next Pod
// has it.
func restart(ctx context.Context, c *change, found findings) error {
	pod, reason := found.turn(c.Object)
	if reason == "" {
		return nil
	}
	c.Event(einmal.EventNormal, "Restarting", "the server in the Pod %s is restarted, because %s", pod.Name, reason)
	return remove(ctx, c, pod)
}

// turn returns the Pod that must be restarted now and why, or "". A primary that has a successor is not restarted. While a claim is being deleted, no Pod
// is, because its volume is deleted when the Pod ends.
func (f findings) turn(db *v1.Database) (*corev1.Pod, string) {
	if f.vanishing(db) != nil {
		return nil, ""
	}
	pod, reason := f.next(db)
	if reason != "" && pod == f.pod && f.successor(db) != nil {
		return nil, ""
	}
	return pod, reason
}

// successor returns the standby that becomes the primary while the primary gets another version or image, or nil. Apps wait less than for a restart. A
// primary that the spec names stays the primary, as does one with unlogged tables, which keep their rows only in a restart. A standby that has not lowered its
// parameters cannot replace it.
func (f findings) successor(db *v1.Database) *standby {
	if db.Spec.Primary != nil || !f.available() || !f.outdated(db, f.pod) || f.unlogged() {
		return nil
	}
	for _, one := range f.wanted(db) {
		if said, asked := f.said(one); !asked || !isReady(one.pod) || !said.Streams() || said.Lag >= smallLag {
			continue
		}
		if state := f.stateIn(one.pod); state != nil && state.Kept == "" {
			return &one
		}
	}
	return nil
}

// unlogged reports whether the primary has unlogged tables.
func (f findings) unlogged() bool {
	state := f.stateIn(f.pod)
	return state != nil && state.Unlogged
}

// next returns the Pod whose turn it is to be restarted and why, or "". Standbys come first, one after the other: if one does not start, stream or answer,
// the primary goes on. A primary that does not run cannot wait for them.
func (f findings) next(db *v1.Database) (*corev1.Pod, string) {
	first := f.restartReason(db, f.pod)
	if first != "" && !f.available() {
		return f.pod, first
	}
	for _, one := range f.wanted(db) {
		said, asked := f.said(one)
		if asked && isReady(one.pod) && (said == nil || said.Lost) {
			if f.diverged(one) {
				return one.pod, "this standby has what the primary does not have"
			}
			return one.pod, "the primary has deleted what this standby has missed"
		}
		if reason := f.restartReason(db, one.pod); reason != "" {
			return one.pod, reason
		}
		if !isReady(one.pod) || !said.Streams() || f.stateIn(one.pod) == nil {
			return nil, ""
		}
	}
	return f.pod, first
}

// silent returns a standby for whose answer the restart of the primary waits, or nil: it may need a restart too, and then comes first.
func (f findings) silent(db *v1.Database) *standby {
	if f.probe == nil || !f.probe.answered || !f.available() || f.restartReason(db, f.pod) == "" {
		return nil
	}
	for _, one := range f.wanted(db) {
		if said, _ := f.said(one); isReady(one.pod) && said.Streams() && f.stateIn(one.pod) == nil {
			return &one
		}
	}
	return nil
}

// restartReason returns why the server in a Pod must be restarted, or "". A server that refuses its parameters would not start again.
func (f findings) restartReason(db *v1.Database, pod *corev1.Pod) string {
	if pod == nil || pod.DeletionTimestamp != nil {
		return ""
	}
	state := f.stateIn(pod)
	switch {
	case f.restoresOther(pod) && isRestored(pod):
		return "the backup is restored, and its volume is not needed any more"
	case f.restoresOther(pod):
		return "spec.bootstrap has changed"
	case state != nil && state.Refused != "":
		return ""
	case f.outdated(db, pod):
		return fmt.Sprintf("the spec says version %s and the image %s", f.set.Spec.Template.Annotations[manifest.VersionAnnotation], serverImage(f.set.Spec.Template.Spec))
	case state != nil && f.parameters.pending(*state) != "" && !f.parameters.reloading(f.probe):
		return "that is what the changed parameters " + f.parameters.pending(*state) + " need"
	case state != nil && state.Kept != "" && f.lowered():
		return "the primary has lowered the parameters " + state.Kept
	}
	return ""
}

// lowered reports whether the primary runs with the parameters of the spec, so that no standby needs higher values any more.
func (f findings) lowered() bool {
	return f.probe.answered && f.probe.state.Pending == "" && !f.parameters.reloading(f.probe)
}

// stateIn returns what the server in a Pod has said of itself, or nil.
func (f findings) stateIn(pod *corev1.Pod) *engine.State {
	if f.probe == nil {
		return nil
	}
	if state, asked := f.probe.standbys[pod.UID]; asked {
		return &state
	}
	if f.probe.pod == pod.UID {
		return f.probe.state
	}
	return nil
}

// outdated reports whether a Pod has another version or image than the spec says. An image that has changed with the operator's flag --image does not
// count: it would restart all servers at once. It waits for the next Pod, unless this one needs a person.
func (f findings) outdated(db *v1.Database, pod *corev1.Pod) bool {
	if !f.restartPending(pod) {
		return false
	}
	has, wants := serverImage(pod.Spec), serverImage(f.set.Spec.Template.Spec)
	return pod.Annotations[manifest.VersionAnnotation] != f.set.Spec.Template.Annotations[manifest.VersionAnnotation] ||
		has != wants && (db.Spec.Image == wants || !isReady(pod) && podProblem(pod).person)
}
