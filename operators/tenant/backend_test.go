package main

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// The API server rejects a TenantBackend that the operator could not read: one TenantBackend that cannot be read would keep the operator from all of them, and
// what moves the marks or the credentials of tenants would leave these behind.
func TestWhatABackendCannotBeIsRefused(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Install(func(*einmaltest.Process) *einmal.Operator { return declare(&backends{}) })
		const store = `"store": {"kind": "SSM", "ssm": {"region": "eu-central-1", "prefix": "/einmal"}}`
		for what, says := range map[string]string{
			`"plans": {"standard": {"statementTimeout": "banana"}}`:         "spec.plans.standard.statementTimeout: Invalid value",
			`"plans": {"premium": {"idleInTransactionTimeout": "600h"}}`:    "must be a duration from 0s to 576h, for example 1m",
			`"plans": {"standard": {"connectionLimit": 0}}`:                 "must be at least 1, or -1 for unlimited",
			`"plans": {"standard": {"statementTimeout": "", "a": "leave"}}`: "spec.plans.standard.statementTimeout: Invalid value",
		} {
			if err := createBackend(w, "wrong", store+", "+what); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), says) {
				w.Errorf("%s: %v, want %q", what, err, says)
			}
		}
		for name, more := range map[string]string{"plain": store + `, "plans": {"standard": {"statementTimeout": "0s"}}`, "named": store + `, "clusterId": "prod"`} {
			if err := createBackend(w, name, more); err != nil {
				w.Fatal(err)
			}
		}
		refusedChanges(w)
	})
}

// refusedChanges expects that the API server refuses changes of what moves the marks or the credentials of tenants.
func refusedChanges(w *einmaltest.World) {
	w.Helper()
	for _, change := range []struct{ name, patch string }{
		{"plain", `{"spec": {"clusterId": "prod"}}`},
		{"named", `{"spec": {"clusterId": null}}`},
		{"named", `{"spec": {"clusterId": "other"}}`},
		{"named", `{"spec": {"store": {"ssm": {"region": "eu-west-1"}}}}`},
	} {
		of := &v1.TenantBackend{ObjectMeta: metav1.ObjectMeta{Name: change.name}}
		err := w.Client().Patch(w.Context(), of, client.RawPatch(types.MergePatchType, []byte(change.patch)))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "immutable") {
			w.Errorf("%s: %v", change.patch, err)
		}
	}
}

// createBackend creates a TenantBackend with the fields of a spec.
func createBackend(w *einmaltest.World, name, spec string) error {
	w.Helper()
	var backend unstructured.Unstructured
	text := `{"apiVersion": "tenant.einmal.dev/v1", "kind": "TenantBackend", "metadata": {"name": "` + name + `"}, "spec": {` + spec + `}}`
	if err := json.Unmarshal([]byte(text), &backend.Object); err != nil {
		w.Fatal(err)
	}
	return w.Client().Create(w.Context(), &backend)
}
