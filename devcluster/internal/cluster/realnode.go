package cluster

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/devcluster/internal/disk"
	"github.com/einmal-operators/einmal/devcluster/internal/node"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
)

// nodeGrace is how long a real node may take to stop its containers and programs.
const nodeGrace = 45 * time.Second

// prepareNode prepares what the API server needs to reach a real node.
func (r *running) prepareNode() error {
	if !r.RealNode {
		return nil
	}
	if err := realnode.RemoveCgroups(r.dir.Path); err != nil {
		return err
	}
	if err := realLayout(r.dir).WriteConfig(); err != nil {
		return err
	}
	ctx, leave := context.WithCancel(context.Background())
	r.leaveNode = leave
	return realnode.ServeMachine(ctx, r.dir.Path, r.server.address())
}

// startNode starts the real node and waits until Pods can run on it.
func (r *running) startNode(ctx context.Context) error {
	if !r.RealNode {
		return nil
	}
	var err error
	r.node, err = r.launchIn(realnode.Isolation(), realnode.Component, "", r.dir.Path, r.dir.File(pkiDir), r.server.address())
	if err != nil {
		return err
	}
	if err := r.await(ctx, realnode.Component, r.nodeReady); err != nil {
		return err
	}
	if err := disk.Problem(); err != nil {
		r.say("note: volumes are %s", disk.Unlimited(err))
	}
	return nil
}

// nodeReady returns an error if the real node is not ready for Pods. The node of the previous start can still look ready.
func (r *running) nodeReady(ctx context.Context) error {
	found, err := r.client.CoreV1().Nodes().Get(ctx, realnode.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == corev1.NodeReady && !condition.LastHeartbeatTime.After(r.start) {
			return errors.New("the kubelet has not reported yet")
		}
	}
	return node.Ready(found)
}

// stopNode stops the real node, if there is one, and removes its cgroups.
func (r *running) stopNode() error {
	if r.node == nil {
		return nil
	}
	r.say("stopping containers; Ctrl-C again kills them")
	return errors.Join(r.group.Stop(nodeGrace, r.node), realnode.RemoveCgroups(r.dir.Path))
}
