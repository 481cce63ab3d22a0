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
	// lines is the configuration file that sets them, and configuration what a server says that has read it.
	lines, configuration string
	// wrong is what is wrong with those of the spec, or "". Then lines has the last that were right.
	wrong string
}

// chooseParameters returns the parameters of the spec if they are right. Otherwise it returns those that the server has got before.
func chooseParameters(ctx context.Context, c *change) (parameters, error) {
	wanted := make(map[string]string, len(c.Object.Spec.Parameters))
	for name, value := range c.Object.Spec.Parameters {
		wanted[name] = string(value)
	}
	wrong := parameter.PostgreSQL().Check(wanted, memoryOf(c.Object))
	if len(wrong) == 0 {
		return withLines(c.Object, parameters{}, manifest.Defaults(c.Object)+parameter.PostgreSQL().Lines(wanted)), nil
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
	chosen.lines, chosen.configuration = lines, manifest.Configuration(db, lines)
	return chosen
}

// memoryOf returns how much memory a server can use, or nil if that is not limited.
func memoryOf(db *v1.Database) *resource.Quantity {
	if limit, limited := manifest.Resources(db).Limits[corev1.ResourceMemory]; limited {
		return &limit
	}
	return nil
}

// reloading reports whether a server has not read these parameters yet.
func (p parameters) reloading(last *probe) bool {
	if last == nil {
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
	return state.Configuration == p.configuration
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
	case last.state.Pending != "":
		return no(kind, "Restarting", "the server is restarted, because that is what the changed parameters "+last.state.Pending+" need")
	}
	return yes(kind, "Applied", "the server runs with the parameters of the spec")
}
