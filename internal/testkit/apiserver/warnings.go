package apiserver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
)

// finalizerWarnings are the warnings about finalizers that a client adds to objects of custom kinds.
func finalizerWarnings(k *kind.Kind, object, before *unstructured.Unstructured) []string {
	if !k.Custom() {
		return nil
	}
	var known []string
	if before != nil {
		known = before.GetFinalizers()
	}
	const where = "metadata.finalizers"
	var warnings []string
	for _, finalizer := range object.GetFinalizers() {
		if slices.Contains(known, finalizer) {
			continue
		}
		for _, problem := range validation.IsQualifiedName(finalizer) {
			warnings = append(warnings, fmt.Sprintf("%s: %q: %s", where, finalizer, problem))
		}
		standard := slices.Contains([]string{
			metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes),
		}, finalizer)
		switch {
		case strings.Contains(finalizer, "/") || standard:
		case strings.Contains(finalizer, "."):
			warnings = append(warnings, fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name including a path (/) "+
				"to avoid accidental conflicts with other finalizer writers", where, finalizer))
		default:
			warnings = append(warnings, fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts "+
				"with other finalizer writers", where, finalizer))
		}
	}
	return warnings
}
