package cluster_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
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
	"github.com/einmal-operators/einmal/test/fixture"
)

// upgradedObjects is how many objects are there when everything is upgraded. One in ten is too large for its essence to be
// kept, and of another one in ten the create handler failed for good.
const (
	upgradedObjects = 1000
	oneIn           = 10
)

// WidgetV2 is the widget of the next release: served as v2, with new Go fields that write their zero values, and one that
// the schema defaults.
type WidgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Size   int    `json:"size,omitempty"`
		Color  string `json:"color,omitempty"`
		Strict bool   `json:"strict"`
		Finish string `json:"finish,omitempty"`
		Limits struct {
			Max int `json:"max"`
		} `json:"limits,omitempty"`
	} `json:"spec,omitempty"`
	Status fixture.WidgetStatus `json:"status,omitempty"`
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
	version := schema.GroupVersion{Group: fixture.Group, Version: "v2"}
	scheme.AddKnownTypeWithName(version.WithKind("Widget"), &WidgetV2{})
	scheme.AddKnownTypeWithName(version.WithKind("WidgetList"), &WidgetV2List{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}

// A new Go field, a CRD default and another served version trigger no handler on any number of handled objects.
func TestAnUpgradeRunsNothing(t *testing.T) {
	w := newWorld(t)
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			if c.Object.Spec.Size%oneIn == 1 {
				return einmal.Permanent(errors.New("it is meant to fail"))
			}
			return nil
		})
		widgets.OnUpdate("change", fixture.Nothing[fixture.Widget])
		widgets.OnUpdate("spec", fixture.Nothing[fixture.Widget], einmal.Fields("spec"))
		widgets.OnUpdate("labels", fixture.Nothing[fixture.Widget], einmal.Fields("metadata.labels"))
	})
	w.Kubectl(t, manyWidgets(t), "create", "-f", "-")
	w.recorded(t, `"base\"`, upgradedObjects)
	w.recorded(t, `"views\"`, upgradedObjects/oneIn)
	w.recorded(t, `"failed\"`, upgradedObjects/oneIn)
	stop()

	w.upgradeSchema(t)
	var calls atomic.Int32
	w.spend(t, fixture.StatusCarrier(), fmt.Sprintf("an upgrade over %d objects", upgradedObjects), 0, func() {
		log := fixture.NewLog(t)
		stop := w.run(t, upgradedOperator(log, &calls), w.account)
		cluster.Until(t, "all objects are looked at", func() bool {
			return log.Count(fmt.Sprintf("objects=%d", upgradedObjects)) > 0
		})
		if calls.Load() != 0 {
			t.Errorf("%d handlers ran", calls.Load())
		}
		stop()
	})
	w.changesAreSeen(t, &calls)
}

// manyWidgets are objects as users write them.
func manyWidgets(t *testing.T) string {
	t.Helper()
	manifests := make([]string, upgradedObjects)
	noise := make([]byte, 40<<10)
	for i := range manifests {
		manifests[i] = fixture.StatusCarrier().Manifest(fmt.Sprintf("many-%d", i), i+1)
		if i%oneIn == 1 {
			if _, err := rand.Read(noise); err != nil {
				t.Fatal(err)
			}
			annotated := fmt.Sprintf("annotations: {noise: %s}, namespace", base64.StdEncoding.EncodeToString(noise))
			manifests[i] = strings.Replace(manifests[i], "namespace", annotated, 1)
		}
	}
	return strings.Join(manifests, "---\n")
}

// upgradedOperator is the next release.
func upgradedOperator(log *fixture.Log, calls *atomic.Int32) *einmal.Operator {
	op := einmal.New(fixture.Identity, einmal.Scheme(addUpgradedKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	widgets := einmal.For[WidgetV2](op)
	count := func(context.Context, *einmal.Change[WidgetV2]) error {
		calls.Add(1)
		return nil
	}
	widgets.OnCreate("make", count)
	widgets.OnUpdate("change", count)
	widgets.OnUpdate("spec", count, einmal.Fields("spec"))
	widgets.OnUpdate("labels", count, einmal.Fields("metadata.labels"))
	return op
}

// changesAreSeen makes sure that the next release sees a change of a small object and of a large one.
func (w *world) changesAreSeen(t *testing.T, calls *atomic.Int32) {
	t.Helper()
	w.run(t, upgradedOperator(fixture.NewLog(t), calls), w.account)
	for i, name := range []string{"many-2", "many-1"} {
		w.edit(t, fixture.StatusCarrier(), name, "strict", true)
		cluster.Until(t, "both handlers of the spec have run", func() bool { return calls.Load() == int32(2*(i+1)) })
	}
	w.quiet(t, fixture.StatusCarrier())
	if calls.Load() != 4 {
		t.Errorf("%d handlers ran, want 4", calls.Load())
	}
}

// recorded waits until so many widgets have a record with this word in it; a closed one has a base.
func (w *world) recorded(t *testing.T, word string, n int) {
	t.Helper()
	cluster.Eventually(t, fmt.Sprintf("%d objects have a record with %s", n, word), func(context.Context) error {
		found := w.Kubectl(t, "", "get", "widgets", "-o", `jsonpath={range .items[*]}{.status.records}{"\n"}{end}`)
		if recorded := strings.Count(found, word); recorded != n {
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
	w.Kubectl(t, "", "patch", "crd", "widgets."+fixture.Group, "--type=json", "-p", `[
		{"op": "add", "path": "`+field+`strict", "value": {"type": "boolean"}},
		{"op": "add", "path": "`+field+`limits", "value": {"type": "object", "properties": {"max": {"type": "integer"}}}},
		{"op": "add", "path": "`+field+`finish", "value": {"type": "string", "default": "matt"}},
		{"op": "copy", "from": "/spec/versions/0", "path": "/spec/versions/-"},
		{"op": "replace", "path": "/spec/versions/1/name", "value": "v2"},
		{"op": "replace", "path": "/spec/versions/1/storage", "value": false}
	]`)
	cluster.Eventually(t, "v2 fills in the default", func(context.Context) error {
		found := w.Kubectl(t, "", "get", "widgets.v2."+fixture.Group, "many-0", "-o", "jsonpath={.spec.finish}")
		if found != "matt" {
			return fmt.Errorf("finish is %q", found)
		}
		return nil
	})
}
