// Package volume provides the volumes of a development cluster. It creates a
// PersistentVolume for each claim of its storage classes, expands it when the claim
// requests more storage, and deletes it when it is released. On simulated nodes,
// nothing is mounted and no directory is created. On a real node, each volume is a
// disk of its size. On a machine that cannot have disks, it is a directory without a
// limit.
package volume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/einmal-operators/einmal/devcluster/internal/disk"
)

const (
	// User is the user name of the component.
	User = "devcluster:volumes"
	// Provisioner is the provisioner name in storage classes.
	Provisioner = "devcluster.einmal.dev/volumes"
	// ClassName is the name of the default storage class.
	ClassName = "standard"

	workers = 4
	resync  = 10 * time.Minute
)

// Class returns the default storage class.
func Class() *storagev1.StorageClass {
	reclaim := corev1.PersistentVolumeReclaimDelete
	binding := storagev1.VolumeBindingImmediate
	expand := true
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        ClassName,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          Provisioner,
		ReclaimPolicy:        &reclaim,
		VolumeBindingMode:    &binding,
		AllowVolumeExpansion: &expand,
	}
}

// Rules returns the permissions that User needs.
func Rules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"persistentvolumes"},
			Verbs: append(read, "create", "update", "delete"),
		},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses"}, Verbs: read},
		{
			APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"},
			Verbs: []string{"create", "patch", "update"},
		},
	}
}

// key identifies a queued object: a claim, or a volume if the namespace is empty.
type key struct{ namespace, name string }

type controller struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	events  record.EventRecorder
	queue   workqueue.TypedRateLimitingInterface[key]
	// directory contains the volumes of a real node; "" on simulated nodes.
	directory string
	// sized is set if new volumes of a real node are disks.
	sized bool
}

// Run provisions volumes in the cluster of the kubeconfig until ctx is done. On a
// real node, directory is an absolute path below which it creates them, and the process
// is in the namespaces of the node. On simulated nodes it is "".
func Run(ctx context.Context, kubeconfig, directory string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})

	factory := informers.NewSharedInformerFactory(client, resync)
	c := &controller{
		client:  client,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		events:  broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Provisioner}),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[key]()),

		directory: directory,
		sized:     directory != "" && disk.Problem() == nil,
	}
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().PersistentVolumeClaims().Informer(),
		factory.Core().V1().PersistentVolumes().Informer(),
	} {
		if _, err := informer.AddEventHandler(c.handler()); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer c.queue.ShutDown()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced && ctx.Err() == nil {
			return fmt.Errorf("list %s: the cache did not sync", kind)
		}
	}
	klog.InfoS("started the volume provisioner", "provisioner", Provisioner)
	for range workers {
		go c.work(ctx)
	}
	<-ctx.Done()
	return nil
}

func (c *controller) handler() cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if object, ok := obj.(metav1.Object); ok {
			c.queue.Add(key{namespace: object.GetNamespace(), name: object.GetName()})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
	}
}

func (c *controller) work(ctx context.Context) {
	for {
		k, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if err := c.sync(ctx, k); err != nil {
			klog.ErrorS(err, "sync failed, will retry", "namespace", k.namespace, "name", k.name)
			c.queue.AddRateLimited(k)
		} else {
			c.queue.Forget(k)
		}
		c.queue.Done(k)
	}
}

func (c *controller) sync(ctx context.Context, k key) error {
	if k.namespace == "" {
		return c.syncVolume(ctx, k.name)
	}
	return c.syncClaim(ctx, k.namespace, k.name)
}
