package engine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/kindloop"
)

// keyed lets what handles Secrets make keyed digests. It waits for the key, however long that takes: without it nothing
// can be remembered of a Secret, so none is handled.
func (o *Operator) keyed(ctx context.Context, k *kindController) error {
	if !k.kind.Secret() {
		return nil
	}
	stored := kube.DigestKey{Client: o.Live, Place: o.Settings.StatePlace(), Owner: o.Settings.Identity}
	retry := time.NewTicker(kindloop.Every)
	defer retry.Stop()
	reported := ""
	for {
		key, err := stored.Load(ctx)
		if err == nil {
			k.views.Digest(object.Keyed(key))
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o.readiness.report(k.kind.GVK.String(), err.Error())
		if reported != err.Error() {
			k.reports.Log.Error("cannot load the key for Secret digests, Secrets are not handled until it loads", "error", err)
			reported = err.Error()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-retry.C:
		}
	}
}

// own reports whether the object is one of those in which the operator keeps its own state. Handlers are never called for them.
func (k *kindController) own(key types.NamespacedName) bool {
	switch k.kind.GVK.GroupKind() {
	case schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "ConfigMap"}:
		return key == k.settings.StatePlace()
	case schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return key == k.settings.StatePlace() || k.election.Lease != nil && key.String() == k.election.Lease.Describe()
	}
	return false
}
