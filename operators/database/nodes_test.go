package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/einmaltest"
)

// worker is the node of the tests.
func worker() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}} }

// lose does what Kubernetes does when the node of a Pod stops to answer.
func (n *modelNode) lose(pod string) {
	n.create(worker())
	n.patchStatus(worker(),
		`{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown","message":"Kubelet stopped posting node status."}]}`)
	n.patch(&corev1.Pod{ObjectMeta: in(pod)}, `{"spec":{"nodeName":"worker-1"}}`)
	n.patchStatus(&corev1.Pod{ObjectMeta: in(pod)}, `{"conditions":[{"type":"Ready","status":"False"}]}`)
}

// regain does what Kubernetes does when that node answers again.
func (n *modelNode) regain(pod string) {
	n.patchStatus(worker(), `{"conditions":[{"type":"Ready","status":"True"}]}`)
	n.patchStatus(&corev1.Pod{ObjectMeta: in(pod)}, `{"conditions":[{"type":"Ready","status":"True"}]}`)
}

// If the node of the primary is lost, the status says so and what a person can do. Nothing becomes the primary by itself, and nothing is deleted.
func TestALostNodeOfThePrimaryIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		n.lose("orders-db-0")
		w.Advance(time.Minute)
		expect(w, "Ready=False PrimaryNodeLost", "Available=False NotReady", "Degraded=True PrimaryNodeLost", "Progressing=False PrimaryNodeLost")
		w.Advance(time.Hour)
		expectStops(w)
		expectServers(w, "1/2, 0: NotReady primary, 1: Streaming standby")
		n.regain("orders-db-0")
		w.Advance(time.Minute)
		expect(w, "Ready=True DatabaseReady", "Degraded=False AsExpected")
		checkReady(w, n)
		expectQuiet(w)
	})
}

// A Pod that is not ready gets no event when its node is lost.
func TestALostNodeOfAPodThatIsNotReadyIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 1)
		n.lose("orders-db-0")
		n.patchStatus(worker(), `{"conditions":[{"type":"Ready","status":"True"}]}`)
		w.Advance(time.Minute)
		expect(w, "Ready=False Starting")
		n.patchStatus(worker(), `{"conditions":[{"type":"Ready","status":"Unknown"}]}`)
		w.Advance(time.Minute)
		expect(w, "Ready=False PrimaryNodeLost")
		w.Delete(worker())
		w.Advance(time.Minute)
		expect(w, "Ready=False PrimaryNodeLost")
	})
}

// If the node of a standby is lost, the primary goes on, and the status says it.
func TestALostNodeOfAStandbyIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		n.lose("orders-db-1")
		w.Advance(time.Minute)
		expect(w, "Ready=True DatabaseReady", "StandbysStreaming=False NodeLost", "Degraded=True NodeLost")
		expectServers(w, "1/2, 0: Ready primary, 1: NotReady standby")
		n.regain("orders-db-1")
		w.Advance(time.Minute)
		expect(w, "StandbysStreaming=True Streaming", "Degraded=False AsExpected")
		expectStops(w)
	})
}
