package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

var update = flag.Bool("update", false, "write testdata/refusals.txt") //nolint:gochecknoglobals // A flag of the test.

// creations are objects that the API server refuses, as changes of a valid one.
func creations() []string {
	return []string{
		`{spec: null}`,
		`{spec: {engine: null}}`,
		`{spec: {version: null}}`,
		`{spec: {storage: null}}`,
		`{metadata: {name: 1-orders}}`,
		`{metadata: {name: orders.db}}`,
		`{metadata: {name: a-name-of-forty-six-letters-is-longer-than-fits}}`,
		`{spec: {engine: oracle}}`,
		`{spec: {version: latest}}`,
		`{spec: {version: 16}}`,
		`{spec: {version: "16.4-alpine"}}`,
		`{spec: {storage: banana}}`,
		`{spec: {storage: 10Mi}}`,
		`{spec: {storage: 100Ei}}`,
		`{spec: {storage: -1Gi}}`,
		`{spec: {replicas: 0}}`,
		`{spec: {replicas: 6}}`,
		`{spec: {primary: 1}}`,
		`{spec: {replicas: 3, primary: 3}}`,
		`{spec: {replicas: 3, primary: -1}}`,
		`{spec: {backupEnabled: "yes"}}`,
		`{spec: {backup: {schedule: ""}}}`,
		`{spec: {backup: {retention: {}}}}`,
		`{spec: {backup: {retention: {count: 7, days: 30}}}}`,
		`{spec: {backup: {retention: {days: 0}}}}`,
		`{spec: {backup: {claim: {storage: little}}}}`,
		`{spec: {backup: {s3: {}}}}`,
		`{spec: {backup: {s3: {endpoint: s3.example.com, bucket: shop, secretName: s3}}}}`,
		`{spec: {backup: {s3: {endpoint: "https://s3.example.com/shop", bucket: shop, secretName: s3}}}}`,
		`{spec: {backup: {s3: {endpoint: "https://s3.example.com", bucket: Shop, secretName: s3}}}}`,
		`{spec: {backup: {s3: {endpoint: "https://s3.example.com", bucket: shop, prefix: /blue/, secretName: s3}}}}`,
		`{spec: {backup: {s3: {endpoint: "https://s3.example.com", bucket: shop, prefix: ../blue, secretName: s3}}}}`,
		`{spec: {bootstrap: {fromBackup: {database: shop-db, namespace: shop}}}}`,
		`{spec: {auth: {username: postgres}}}`,
		`{spec: {auth: {username: "o'brien"}}}`,
		`{spec: {auth: {username: einmal_backup}}}`,
		`{spec: {auth: {database: template1}}}`,
		`{spec: {auth: {database: Orders}}}`,
		`{spec: {image: ""}}`,
		`{spec: {parameters: {work_mem: 64}}}`,
		`{spec: {parameters: {autovacuum: on}}}`,
		`{spec: {resources: {limits: {memory: much}}}}`,
		`{spec: {engine: mariadb, version: "10.11", replicas: 2}}`,
		`{spec: {engine: mariadb, version: "10.11", auth: {database: mysql, username: root}}}`,
	}
}

// changes are changes of an existing object that the API server refuses.
func changes() []string {
	return []string{
		`{"spec":{"engine":"mariadb"}}`,
		`{"spec":{"version":"15"}}`,
		`{"spec":{"storage":"512Mi"}}`,
		`{"spec":{"storageClassName":"fast"}}`,
		`{"spec":{"backup":{"claim":{"storageClassName":"fast"}}}}`,
		`{"spec":{"auth":{"username":"other"}}}`,
		`{"spec":{"auth":{"database":"other"}}}`,
	}
}

// Objects that make no sense are refused, each with a message that a person understands: testdata/refusals.txt has them.
func TestWrongDatabasesAreRefused(t *testing.T) {
	var got strings.Builder
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Install(func(*einmaltest.Process) *einmal.Operator {
			return declare(clients{}, defaultImages(), prometheus.NewRegistry())
		})
		refuseCreations(w, &got)
		refuseChanges(w, &got)
	})
	const file = "testdata/refusals.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got), rewrite it with -update:\n%s", file, diff)
	}
}

// A raise of the storage that its class refuses can be taken back, because the claim has the size of before.
func TestARefusedRaiseOfTheStorageCanBeTakenBack(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Install(func(*einmaltest.Process) *einmal.Operator {
			return declare(clients{}, defaultImages(), prometheus.NewRegistry())
		})
		db := ordersDB()
		w.Create(db)
		db.Status.Storage = &v1.StorageStatus{Requested: resource.MustParse("1Gi")}
		if err := w.Client().Status().Update(w.Context(), db); err != nil {
			w.Fatal(err)
		}
		for _, size := range []string{"2Gi", "3Gi", "1Gi", "2Gi", "1.5Gi"} {
			w.Patch(db, `{"spec":{"storage":"`+size+`"}}`)
		}
		err := w.Client().Patch(w.Context(), db, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"storage":"900Mi"}}`)))
		if err == nil || !strings.Contains(err.Error(), "can grow but not shrink: a volume does not give back space, and this one has 1Gi") {
			w.Errorf("the claim has 1Gi, and the answer to less is %v", err)
		}
	})
}

// refuseCreations adds the answers to creations.
func refuseCreations(w *einmaltest.World, to *strings.Builder) {
	w.Helper()
	for _, wrong := range creations() {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "database.einmal.dev/v1", "kind": "Database",
			"metadata": map[string]any{"name": "orders-db", "namespace": "default"},
			"spec":     map[string]any{"engine": "postgresql", "version": "16", "storage": "1Gi"},
		}}
		var change map[string]any
		if err := yaml.Unmarshal([]byte(wrong), &change); err != nil {
			w.Fatal(err)
		}
		merge(object.Object, change)
		refused(w, to, "create "+wrong, w.Client().Create(w.Context(), object))
	}
}

// refuseChanges adds the answers to changes of an existing Database.
func refuseChanges(w *einmaltest.World, to *strings.Builder) {
	w.Helper()
	valid := ordersDB()
	existing(w, w.Client(), valid, "16")
	for _, version := range []string{"17", "16"} { // The operator refuses 17 with these data, so the way back must be open.
		w.Patch(valid.DeepCopy(), `{"spec":{"version":"`+version+`"}}`)
	}
	for _, wrong := range changes() {
		patch := client.RawPatch("application/merge-patch+json", []byte(wrong))
		refused(w, to, "patch "+wrong, w.Client().Patch(w.Context(), valid.DeepCopy(), patch))
	}
}

// existing creates a Database whose volume holds data of a version.
func existing(tb testing.TB, c client.Client, db *v1.Database, version string) {
	tb.Helper()
	if err := c.Create(tb.Context(), db); err != nil {
		tb.Fatal(err)
	}
	db.Status.DataVersion = version
	if err := c.Status().Update(tb.Context(), db); err != nil {
		tb.Fatal(err)
	}
}

// A major version of MariaDB has two numbers.
func TestTheVersionOfAMariaDBIsChanged(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Install(func(*einmaltest.Process) *einmal.Operator {
			return declare(clients{}, defaultImages(), prometheus.NewRegistry())
		})
		db := ordersMariaDB()
		existing(w, w.Client(), db, "10.11")
		for _, step := range []struct {
			version string
			want    bool
		}{{"10.11.6", true}, {"11.4", true}, {"10.11", true}, {"9", false}} {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"version":"`+step.version+`"}}`))
			if err := w.Client().Patch(w.Context(), db.DeepCopy(), patch); (err == nil) != step.want || (err != nil && !apierrors.IsInvalid(err)) {
				w.Errorf("version %s: %v", step.version, err)
			}
		}
	})
}

// kubectl scale, and so an autoscaler, changes the replicas of a Database.
func TestReplicasAreSetWithKubectlScale(t *testing.T) {
	c := einmaltest.SharedCluster(t, v1.AddToScheme)
	c.ApplyFolders(t, "config/crd")
	db := ordersDB()
	db.Namespace = c.Namespace(t, "database")
	if err := c.Create(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "", "scale", "--namespace", db.Namespace, "database/"+db.Name, "--replicas=3")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(db), db); err != nil || db.Spec.Replicas != 3 {
		t.Errorf("replicas are %v (%v), want 3", db.Spec.Replicas, err)
	}
	db.Status.Replicas, db.Status.Selector = 1, "database.einmal.dev/name="+db.Name
	if err := c.Status().Update(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(t.Context(), db, scale); err != nil {
		t.Fatal(err)
	}
	want := autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}, Status: autoscalingv1.ScaleStatus{Replicas: 1, Selector: db.Status.Selector}}
	if scale.Spec != want.Spec || scale.Status != want.Status {
		t.Errorf("an autoscaler sees %+v and %+v, want %+v and %+v", scale.Spec, scale.Status, want.Spec, want.Status)
	}
	if err := c.Patch(t.Context(), db, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"primary":2}}`))); err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas, scale.ResourceVersion = 2, db.ResourceVersion
	if err := c.SubResource("scale").Update(t.Context(), db, client.WithSubResourceBody(scale)); !apierrors.IsInvalid(err) {
		t.Errorf("the requested primary was scaled away: %v", err)
	}
}

// refused adds the answer to a request that must be refused.
func refused(tb testing.TB, to *strings.Builder, request string, err error) {
	tb.Helper()
	if !apierrors.IsInvalid(err) {
		tb.Errorf("%s: the answer is %v, want a refusal", request, err)
		return
	}
	fmt.Fprintf(to, "%s\n    %v\n", request, err)
}

// merge changes an object as a merge patch does.
func merge(object, change map[string]any) {
	for key, value := range change {
		below, isMap := value.(map[string]any)
		existing, exists := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isMap && exists:
			merge(existing, below)
		default:
			object[key] = value
		}
	}
}
