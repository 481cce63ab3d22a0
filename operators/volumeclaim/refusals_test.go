package main

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// creation is the spec of a claim that the API server refuses, and a part of its answer.
type creation struct {
	spec map[string]any
	want string
}

// change is a merge patch that the API server refuses, and a part of its answer.
type change struct{ patch, want string }

// creations are the claims that the API server refuses.
func creations() map[string]creation {
	return map[string]creation{
		"without a spec":         {nil, "spec.size: Required value: say how much space the claim asks for, for example 1Gi"},
		"without a size":         {map[string]any{}, "spec.size: Required value: say how much space the claim asks for, for example 1Gi"},
		"with a word for a size": {map[string]any{"size": "big"}, `spec.size: Invalid value: "big": must be a number with a unit, for example 500M or 1Gi`},
		"of a negative size":     {map[string]any{"size": "-1Gi"}, `spec.size: Invalid value: "-1Gi": must be from 1Mi to 64Ti`},
		"of no size":             {map[string]any{"size": int64(0)}, `spec.size: Invalid value: 0: must be from 1Mi to 64Ti`},
		"of a tiny size":         {map[string]any{"size": "1k"}, `spec.size: Invalid value: "1k": must be from 1Mi to 64Ti`},
		"with a word for a time": {
			map[string]any{"size": "1Gi", "podSelector": map[string]any{}, "gracePeriod": "1d"},
			`spec.gracePeriod: Invalid value: "1d": must be a time in hours, minutes and seconds, for example 30m or 1h30m`,
		},
		"that is gone at once": {
			map[string]any{"size": "1Gi", "podSelector": map[string]any{}, "expiryPeriod": "0s"},
			`spec.expiryPeriod: Invalid value: "0s": must be from 1s to 8760h, which is a year`,
		},
		"for an eternity": {
			map[string]any{"size": "1Gi", "podSelector": map[string]any{}, "expiryPeriod": "8760h1s"},
			`spec.expiryPeriod: Invalid value: "8760h1s": must be from 1s to 8760h, which is a year`,
		},
		"that is for no pods": {
			map[string]any{"size": "1Gi", "gracePeriod": "30m"},
			"spec.podSelector: Required value: say for which pods the claim is, since gracePeriod and expiryPeriod depend on them; {} is all pods of the namespace",
		},
		"with half a selector": {
			map[string]any{"size": "1Gi", "podSelector": map[string]any{
				"matchExpressions": []any{map[string]any{"key": "app", "operator": "In"}},
			}},
			"each of matchExpressions has the operator In or NotIn and values, or the operator Exists or DoesNotExist and no values",
		},
		"of an absurd size": {map[string]any{"size": "1E"}, `spec.size: Invalid value: "1E": must be from 1Mi to 64Ti`},
	}
}

// changes are the changes of a claim of 1G that the API server refuses.
func changes() map[string]change {
	return map[string]change{
		"that shrinks": {
			`{"spec":{"size":"500M"}}`,
			`spec.size: Invalid value: "500M": can grow but not shrink: a volume does not give back space, and this one has 1G`,
		},
		"that takes its size away": {`{"spec":{"size":null}}`, "spec.size: Required value: say how much space the claim asks for, for example 1Gi"},
		"of the class": {
			`{"spec":{"storageClassName":"other"}}`,
			"spec.storageClassName: Invalid value: cannot be changed: the class of a volume is chosen when the volume is created",
		},
		"of the access modes": {
			`{"spec":{"accessModes":["ReadWriteMany"]}}`,
			"spec.accessModes: Invalid value: cannot be changed: how a volume may be mounted is chosen when the volume is created",
		},
	}
}

// The API server refuses claims that make no sense, with a message that says why. The operator does not run.
func TestClaimsThatMakeNoSenseAreRefused(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Install(func(*einmaltest.Process) *einmal.Operator { return operator() })
		for title, test := range creations() {
			claim := &unstructured.Unstructured{Object: map[string]any{}}
			claim.SetGroupVersionKind(v1.GroupVersion.WithKind("EphemeralVolumeClaim"))
			claim.SetNamespace("default")
			claim.SetName("senseless")
			if test.spec != nil {
				claim.Object["spec"] = test.spec
			}
			checkRefused(w, "a claim "+title, w.Client().Create(w.Context(), claim), test.want)
		}
		settled := &v1.EphemeralVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settled"},
			Spec:       v1.EphemeralVolumeClaimSpec{Size: resource.MustParse("1G")},
		}
		w.Create(settled)
		for title, test := range changes() {
			patch := client.RawPatch(types.MergePatchType, []byte(test.patch))
			checkRefused(w, "a change "+title, w.Client().Patch(w.Context(), settled.DeepCopy(), patch), test.want)
		}
	})
}

func checkRefused(tb testing.TB, title string, err error, sentence string) {
	tb.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), sentence) {
		tb.Errorf("%s: the answer was: %v\nwant a refusal with: %s", title, err, sentence)
	}
}
