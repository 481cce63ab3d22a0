// An operator with client-go alone: an informer, a queue, and patches whose answers it does not decode. It does the least that each object needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	_ "net/http/pprof" //nolint:gosec // On loopback.
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	"github.com/einmal-operators/einmal/bench/gadget"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "`file`")
	profiles := flag.String("pprof-bind-address", "0", "`address` of /debug/pprof")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if *profiles != "0" {
		go func() { log.Error("no profiles", "error", http.ListenAndServe(*profiles, nil)) }() //nolint:gosec // On loopback.
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, log); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // The process ends.
	}
}

// controller sees to each object whose key is in its queue.
type controller struct {
	log    *slog.Logger
	server rest.Interface
	known  cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[string]
}

func run(ctx context.Context, kubeconfig string, log *slog.Logger) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := gadget.AddToScheme(scheme, gadget.Bare); err != nil {
		return err
	}
	group := gadget.GroupVersion()
	config.QPS, config.APIPath, config.GroupVersion = -1, "/apis", &group
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	server, err := rest.RESTClientFor(config)
	if err != nil {
		return err
	}
	informer := cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(server, gadget.Resource(gadget.Bare), metav1.NamespaceAll, fields.Everything()), &gadget.Gadget{}, 0, cache.Indexers{})
	if err := informer.SetTransform(stripped); err != nil {
		return err
	}
	c := controller{log, server, informer.GetIndexer(), workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	if _, err := informer.AddEventHandler(c.handlers()); err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("no list")
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	var workers sync.WaitGroup
	for range gadget.Workers {
		workers.Go(func() { c.work(ctx) })
	}
	workers.Wait()
	return nil
}

// stripped is an object without its managed fields.
func stripped(object any) (any, error) {
	if one, is := object.(*gadget.Gadget); is {
		one.ManagedFields = nil
	}
	return object, nil
}

// handlers fill the queue with what is new or has another generation.
func (c controller) handlers() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(before, after any) {
			old, was := before.(*gadget.Gadget)
			if now, is := after.(*gadget.Gadget); was && is && old.Generation != now.Generation {
				enqueue(now)
			}
		},
		DeleteFunc: func(object any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				c.log.Info("the object is gone", "object", key)
			}
		},
	}
}

func (c controller) work(ctx context.Context) {
	for {
		key, ended := c.queue.Get()
		if ended {
			return
		}
		if err := c.see(ctx, key); err != nil && !apierrors.IsNotFound(err) {
			c.log.Error("will retry", "object", key, "error", err)
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

// see reports the size of an object, or lets a deleted one go.
func (c controller) see(ctx context.Context, key string) error {
	found, has, err := c.known.GetByKey(key)
	one, is := found.(*gadget.Gadget)
	if err != nil || !has || !is {
		return err
	}
	kept := slices.Contains(one.Finalizers, gadget.Finalizer)
	version := one.ResourceVersion
	switch {
	case one.DeletionTimestamp != nil && !kept:
		return nil
	case one.DeletionTimestamp != nil:
		c.log.Info("releasing", "object", key)
		c.log.Info("removing the finalizer", "object", key)
		left := slices.DeleteFunc(slices.Clone(one.Finalizers), func(f string) bool { return f == gadget.Finalizer })
		if err := c.patch(ctx, one, "", map[string]any{"metadata": map[string]any{"finalizers": left, "resourceVersion": version}}); err != nil {
			return err
		}
		c.log.Info("removed the finalizer", "object", key)
		return nil
	case !kept:
		c.log.Info("adding the finalizer", "object", key)
		all := append(slices.Clone(one.Finalizers), gadget.Finalizer)
		if err := c.patch(ctx, one, "", map[string]any{"metadata": map[string]any{"finalizers": all, "resourceVersion": version}}); err != nil {
			return err
		}
		c.log.Info("added the finalizer", "object", key)
	}
	wanted := gadget.Status{Size: one.Spec.Size, Phase: gadget.Ready}
	if one.Status == wanted {
		return nil
	}
	c.log.Info("reporting", "object", key, "size", wanted.Size)
	if err := c.patch(ctx, one, "status", map[string]any{"status": wanted}); err != nil {
		return err
	}
	c.log.Info("reported", "object", key, "size", wanted.Size)
	return nil
}

func (c controller) patch(ctx context.Context, one *gadget.Gadget, subresource string, change any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return c.server.Patch(types.MergePatchType).Namespace(one.Namespace).Resource(gadget.Resource(gadget.Bare)).Name(one.Name).SubResource(subresource).
		Body(body).Do(ctx).Error()
}
