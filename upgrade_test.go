package einmal_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// upgradedObjects is how many objects are there when everything is upgraded.
const upgradedObjects = 1000

// WidgetV2 is the widget of the next release: served as v2, with a new Go field that writes its zero value, and one that
// the schema defaults.
type WidgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Size   int    `json:"size,omitempty"`
		Color  string `json:"color,omitempty"`
		Strict bool   `json:"strict"`
		Finish string `json:"finish,omitempty"`
	} `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// DeepCopyObject copies the widget.
func (w *WidgetV2) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Records.Records = maps.Clone(w.Status.Records.Records)
	return &copied
}

// WidgetV2List is a list of widgets.
type WidgetV2List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WidgetV2 `json:"items"`
}

// DeepCopyObject copies the list.
func (l *WidgetV2List) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]WidgetV2, len(l.Items))
	for i := range l.Items {
		if item, is := l.Items[i].DeepCopyObject().(*WidgetV2); is {
			copied.Items[i] = *item
		}
	}
	return &copied
}

func addUpgradedKinds(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: testGroup, Version: "v2"}
	scheme.AddKnownTypeWithName(version.WithKind("Widget"), &WidgetV2{})
	scheme.AddKnownTypeWithName(version.WithKind("WidgetList"), &WidgetV2List{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}

// Design §6: a new Go field, a CRD default and another served version run nothing on any number of handled objects.
func TestAnUpgradeRunsNothing(t *testing.T) {
	w := newWorld(t)
	stop, _ := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) {
		widgets.OnCreate("make", nothing[Widget])
		widgets.OnUpdate("change", nothing[Widget])
	})
	manifests := make([]string, upgradedObjects)
	for i := range manifests {
		manifests[i] = typedCarrier().manifest(fmt.Sprintf("many-%d", i), i+1)
	}
	w.Kubectl(t, strings.Join(manifests, "---\n"), "create", "-f", "-")
	w.recorded(t, upgradedObjects)
	stop()

	w.upgradeSchema(t)
	w.spend(t, typedCarrier(), fmt.Sprintf("an upgrade over %d objects", upgradedObjects), 0, func() {
		var calls atomic.Int32
		log := testLog(t)
		op := einmal.New(testIdentity, einmal.Scheme(addUpgradedKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
		widgets := einmal.For[WidgetV2](op)
		count := func(context.Context, *einmal.Change[WidgetV2]) error {
			calls.Add(1)
			return nil
		}
		widgets.OnCreate("make", count)
		widgets.OnUpdate("change", count)
		stop := w.run(t, op, w.account)
		cluster.Until(t, "all objects are looked at", func() bool {
			return strings.Contains(log.String(), fmt.Sprintf("objects=%d", upgradedObjects))
		})
		if calls.Load() != 0 {
			t.Errorf("%d handlers ran", calls.Load())
		}
		stop()
	})
}

// recorded waits until so many widgets have a closed record.
func (w *world) recorded(t *testing.T, n int) {
	t.Helper()
	cluster.Eventually(t, "all objects have a record", func(context.Context) error {
		found := w.Kubectl(t, "", "get", "widgets", "-o", `jsonpath={range .items[*]}{.status.records}{"\n"}{end}`)
		if recorded := strings.Count(found, `"base\"`); recorded != n {
			return fmt.Errorf("%d of %d", recorded, n)
		}
		return nil
	})
}

// upgradeSchema serves widgets as v2 too, with a field that has a default.
func (w *world) upgradeSchema(t *testing.T) {
	t.Helper()
	// Stored objects are defaulted by the schema of the version that they are stored in.
	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	w.Kubectl(t, "", "patch", "crd", "widgets."+testGroup, "--type=json", "-p", `[
		{"op": "add", "path": "`+field+`strict", "value": {"type": "boolean"}},
		{"op": "add", "path": "`+field+`finish", "value": {"type": "string", "default": "matt"}},
		{"op": "copy", "from": "/spec/versions/0", "path": "/spec/versions/-"},
		{"op": "replace", "path": "/spec/versions/1/name", "value": "v2"},
		{"op": "replace", "path": "/spec/versions/1/storage", "value": false}
	]`)
	cluster.Eventually(t, "v2 fills in the default", func(context.Context) error {
		found := w.Kubectl(t, "", "get", "widgets.v2."+testGroup, "many-0", "-o", "jsonpath={.spec.finish}")
		if found != "matt" {
			return fmt.Errorf("finish is %q", found)
		}
		return nil
	})
}
