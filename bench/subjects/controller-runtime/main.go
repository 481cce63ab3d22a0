// An operator by hand on controller-runtime, at its best: it sends merge patches, reconciles an object only when its generation has changed, and caches no
// managed fields.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/einmal-operators/einmal/bench/gadget"
)

func main() {
	// The flag -kubeconfig comes with controller-runtime.
	profiles := flag.String("pprof-bind-address", "0", "`address` of /debug/pprof")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := run(ctrl.SetupSignalHandler(), *profiles); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, profiles string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // The API server decides.
	scheme := runtime.NewScheme()
	if err := gadget.AddToScheme(scheme, gadget.Runtime); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, PprofBindAddress: profiles,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&gadget.Gadget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: gadget.Workers}).
		Complete(reconciler{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

type reconciler struct{ client client.Client }

// Reconcile reports the size, or lets a deleted object go.
func (r reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var one gadget.Gadget
	if err := r.client.Get(ctx, request.NamespacedName, &one); err != nil {
		if apierrors.IsNotFound(err) {
			log.FromContext(ctx).Info("the object is gone")
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !one.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, &one)
	}
	if err := r.addFinalizer(ctx, &one); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, &one)
}

func (r reconciler) addFinalizer(ctx context.Context, one *gadget.Gadget) error {
	before := one.DeepCopy()
	if !controllerutil.AddFinalizer(one, gadget.Finalizer) {
		return nil
	}
	log.FromContext(ctx).Info("adding the finalizer")
	if err := r.client.Patch(ctx, one, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	log.FromContext(ctx).Info("added the finalizer")
	return nil
}

func (r reconciler) report(ctx context.Context, one *gadget.Gadget) error {
	wanted := gadget.Status{Size: one.Spec.Size, Phase: gadget.Ready}
	if one.Status == wanted {
		return nil
	}
	log.FromContext(ctx).Info("reporting", "size", wanted.Size)
	before := one.DeepCopy()
	one.Status = wanted
	if err := r.client.Status().Patch(ctx, one, client.MergeFrom(before)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("reported", "size", wanted.Size)
	return nil
}

func (r reconciler) release(ctx context.Context, one *gadget.Gadget) error {
	before := one.DeepCopy()
	if !controllerutil.RemoveFinalizer(one, gadget.Finalizer) {
		return nil
	}
	log.FromContext(ctx).Info("releasing")
	log.FromContext(ctx).Info("removing the finalizer")
	if err := r.client.Patch(ctx, one, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("removed the finalizer")
	return nil
}
