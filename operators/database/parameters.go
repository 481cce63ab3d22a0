package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/parameter"
)

// parameters are those that the server gets.
type parameters struct {
	// lines is the configuration file that sets them, and configuration what a server says that has read it, or earlier, if an earlier operator started it.
	lines, configuration, earlier string
	// atStart reports whether servers read it only when they start.
	atStart bool
	// wrong is what is wrong with those of the spec, or "". Then lines has the last that were right.
	wrong string
}

// chooseParameters returns the parameters of the spec if they are right. Otherwise it returns those that the server has got before.
func chooseParameters(ctx context.Context, c *change) (parameters, error) {
	wanted := make(map[string]string, len(c.Object.Spec.Parameters))
	for name, value := range c.Object.Spec.Parameters {
		wanted[name] = string(value)
	}
	wrong := parametersOf(c.Object).Check(wanted, parameter.Room{Memory: memoryOf(c.Object), Volume: &c.Object.Spec.Storage})
	if len(wrong) == 0 {
		return withLines(c.Object, parameters{}, manifest.Defaults(c.Object)+parametersOf(c.Object).Lines(wanted)), nil
	}
	chosen := parameters{wrong: "spec.parameters: " + strings.Join(wrong, "; ")}
	config, err := get(ctx, c, manifest.Config(c.Object), &corev1.ConfigMap{})
	if config != nil && metav1.IsControlledBy(config, c.Object) {
		chosen = withLines(c.Object, chosen, config.Data[manifest.ParametersKey])
	}
	return chosen, err
}

// withLines adds the configuration file.
func withLines(db *v1.Database, chosen parameters, lines string) parameters {
	chosen.lines, chosen.atStart = lines, manifest.ReadsAtStart(db)
	chosen.configuration, chosen.earlier = manifest.Configuration(db, lines), manifest.EarlierConfiguration(db, lines)
	return chosen
}

// memoryOf returns how much memory a server can use, or nil if that is not limited.
func memoryOf(db *v1.Database) *resource.Quantity {
	if limit, limited := manifest.Resources(db).Limits[corev1.ResourceMemory]; limited {
		return &limit
	}
	return nil
}

// reloading reports whether a server has not read these parameters yet, and does so without a restart.
func (p parameters) reloading(last *probe) bool {
	if last == nil || p.atStart {
		return false
	}
	for _, state := range last.standbys {
		if !p.readBy(state) {
			return true
		}
	}
	return last.state != nil && !p.readBy(*last.state)
}

// readBy reports whether a server has read these parameters.
func (p parameters) readBy(state engine.State) bool {
	return state.Configuration == p.configuration || state.Configuration == p.earlier
}

// pending says which parameters a server gets when it is restarted, or "".
func (p parameters) pending(state engine.State) string {
	if p.atStart && !p.readBy(state) {
		return "of the spec"
	}
	return state.Pending
}

// parametersApplied reports whether the server runs with the parameters of the spec. What was known of them stays while the server cannot be reached for
// some moments.
func parametersApplied(db *v1.Database, found findings) metav1.Condition {
	const kind = v1.ConditionParametersApplied
	known := meta.FindStatusCondition(db.Status.Conditions, kind)
	switch last := found.probe; {
	case found.parameters.wrong != "":
		return no(kind, "Invalid", found.parameters.wrong+"; the server keeps the parameters that it has")
	case last != nil && last.state == nil && last.brief() && known != nil && known.ObservedGeneration == db.Generation:
		return *known
	case last == nil || last.state == nil:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: "NotAsked", Message: "the server cannot be asked which parameters it has"}
	case found.parameters.reloading(last):
		return no(kind, "Reloading", "the server reads its new parameters")
	case last.state.Refused != "":
		return no(kind, "Refused", "the server refuses parameters of the spec: "+last.state.Refused)
	case found.parameters.pending(*last.state) != "":
		return no(kind, "Restarting", "the server is restarted, because that is what the changed parameters "+found.parameters.pending(*last.state)+" need")
	}
	return yes(kind, "Applied", "the server runs with the parameters of the spec")
}
