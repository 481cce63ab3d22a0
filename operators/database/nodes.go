package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
)

// nodeInterval is how soon the operator looks again whether the node of a Pod is lost. A Pod that was not ready before gets no event then.
const nodeInterval = 30 * time.Second

// primaryNodeLost is the reason of a database whose primary is on a lost node.
const primaryNodeLost = "PrimaryNodeLost"

// withNodes adds the nodes that are not ready, of Pods that accept no connections. Kubernetes says that such a Pod is not ready too, but not why.
func (o observed) withNodes(ctx context.Context, c *change) (observed, error) {
	o.lost = map[string]string{}
	for _, pod := range o.pods() {
		name := pod.Spec.NodeName
		if name == "" || isReady(pod) {
			continue
		}
		node := &corev1.Node{}
		err := c.Client.Get(ctx, client.ObjectKey{Name: name}, node)
		switch {
		case apierrors.IsNotFound(err):
			o.lost[name] = "it does not exist any more"
		case apierrors.IsForbidden(err): // An administrator can take this right away. Then the status says only what the Pod says.
		case err != nil:
			return o, fmt.Errorf("read the Node %s: %w", name, err)
		default:
			if why := whyNotReady(node); why != "" {
				o.lost[name] = why
			}
		}
	}
	return o, nil
}

// whyNotReady returns why a node is not ready, or "".
func whyNotReady(node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return condition.Reason + ": " + condition.Message
		}
	}
	return ""
}

// lookAgain returns when to look again at nodes and claims of others, which send no events, or nil if all Pods on nodes accept connections and no
// standby waits for a claim.
func (o observed) lookAgain() error {
	if slices.ContainsFunc(o.standbys, func(one standby) bool { return one.foreign != nil }) {
		return einmal.RequeueAfter(nodeInterval)
	}
	for _, pod := range o.pods() {
		if pod.Spec.NodeName != "" && !isReady(pod) {
			return einmal.RequeueAfter(nodeInterval)
		}
	}
	return nil
}

// problemIn explains why the server in a Pod, which exists, does not accept connections. If its node is lost, nothing else of the Pod is known to be true.
func (o observed) problemIn(pod *corev1.Pod) problem {
	node := pod.Spec.NodeName
	why, lost := o.lost[node]
	if !lost || isReady(pod) {
		return podProblem(pod)
	}
	reason := "NodeLost"
	if pod == o.pod {
		reason = primaryNodeLost
	}
	return problem{reason, fmt.Sprintf("the node %s of the Pod %s is not ready (%s); if the node is off and does not return, this starts the Pod on another one, "+
		"if its volume can move: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", node, pod.Name, why, node), true}
}
