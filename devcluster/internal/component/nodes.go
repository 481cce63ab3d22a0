//go:build !race

package component

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/utils/client"
)

const (
	// nodeHolder is the holder identity of the node leases. It is the same at
	// every start, so that a new process need not wait until the leases of the
	// previous process expire.
	nodeHolder = "devcluster"
	// nodeIP is the address of every node. Nothing listens there on the kubelet's
	// port, so "kubectl logs" fails immediately instead of hanging.
	nodeIP           = "127.0.0.1"
	podCIDR          = "10.64.0.0/16"
	leaseSeconds     = 40
	stageParallelism = 4
)

// runNodes simulates the kubelet of every node. It runs the controller of kwok with
// its default stages, without kwok's server.
func runNodes(ctx context.Context, kubeconfig string) error {
	stages, err := defaultStages()
	if err != nil {
		return err
	}
	conf, err := nodesConfig(kubeconfig)
	if err != nil {
		return err
	}
	conf.LocalStages = stages
	controller, err := controllers.NewController(conf)
	if err != nil {
		return err
	}
	if err := controller.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func nodesConfig(kubeconfig string) (controllers.Config, error) {
	conf := controllers.Config{
		Clock:                         clock.RealClock{},
		ManageAllNodes:                true,
		ID:                            nodeHolder,
		CIDR:                          podCIDR,
		NodeIP:                        nodeIP,
		PodPlayStageParallelism:       stageParallelism,
		NodePlayStageParallelism:      stageParallelism,
		NodeLeaseParallelism:          stageParallelism,
		NodeLeaseDurationSeconds:      leaseSeconds,
		PodsOnNodeSyncParallelism:     1,
		EnablePodsOnNodeSyncListPager: true,
	}
	clients, err := client.NewClientset("", kubeconfig)
	if err != nil {
		return conf, err
	}
	restConfig, err := clients.ToRESTConfig()
	if err != nil {
		return conf, err
	}
	conf.ImpersonatingDynamicClient = clients.ToImpersonatingDynamicClient()
	conf.ImpersonatingTypedClient = clients.ToImpersonatingTypedClient()
	if conf.DynamicClient, err = clients.ToDynamicClient(); err != nil {
		return conf, err
	}
	if conf.RESTMapper, err = clients.ToRESTMapper(); err != nil {
		return conf, err
	}
	if conf.RESTClient, err = rest.RESTClientFor(restConfig); err != nil {
		return conf, err
	}
	if conf.TypedClient, err = kubernetes.NewForConfig(restConfig); err != nil {
		return conf, err
	}
	conf.TypedKwokClient, err = versioned.NewForConfig(restConfig)
	return conf, err
}

// defaultStages returns the default stages of kwok: nodes and Pods become ready
// immediately, Pods of Jobs complete, and deleted Pods are removed.
func defaultStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range []string{
		nodefast.DefaultNodeInit,
		heartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](text)
		if err != nil {
			return nil, fmt.Errorf("parse stage: %w", err)
		}
		ref := stage.Spec.ResourceRef
		stages[ref] = append(stages[ref], stage)
	}
	return stages, nil
}
