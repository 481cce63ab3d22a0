package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// switchOff loses the node of a Pod, whose server ends.
func (n *modelNode) switchOff(pod string) {
	n.mu.Lock()
	n.off[pod], n.givenUp = true, true
	if server := n.servers[pod]; server != nil {
		server.data.ended = false
	}
	delete(n.servers, pod)
	n.mu.Unlock()
	n.lose(pod)
}

// switchOn starts the node of a Pod again.
func (n *modelNode) switchOn(pod string) {
	n.patchStatus(worker(), `{"conditions":[{"type":"Ready","status":"True"}]}`)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.off, pod)
}

// giveUp executes the command in the message of the condition Ready.
func giveUp(w *einmaltest.World) {
	w.Helper()
	db := ordersDB()
	w.Get(db)
	said := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionReady).Message
	_, uid, offered := strings.Cut(said, failoverAnnotation+"=")
	if !offered {
		w.Fatalf("no failover is offered: %s", said)
	}
	annotate(w, uid)
}

func annotate(w *einmaltest.World, uid string) {
	w.Helper()
	w.Patch(ordersDB(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, failoverAnnotation, uid))
}

// expectNoRequest expects that the operator has removed the annotation.
func expectNoRequest(w *einmaltest.World) {
	w.Helper()
	db := ordersDB()
	if w.Get(db); givenUp(db) != "" {
		w.Errorf("the annotation is left: %v", db.Annotations)
	}
}

// A person gives up a primary whose node is off. The standby that has most becomes the primary. When the node is back, its server is a standby, and copies
// the database again.
func TestAPersonGivesUpThePrimary(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		n.connect("orders-db-1", false)
		w.Advance(time.Minute)
		n.switchOff("orders-db-0")
		w.Advance(time.Minute)
		expect(w, "Ready=False PrimaryNodeLost")
		giveUp(w)
		w.Advance(time.Minute)
		expect(w, "Ready=True DatabaseReady", "Available=True AcceptsConnections", "StandbysStreaming=False NodeLost")
		n.connect("orders-db-1", true)
		w.Advance(time.Minute)
		expectServers(w, "2/3, 0: NotReady , 1: Streaming standby, 2: Ready primary")
		expectNoRequest(w)
		n.switchOn("orders-db-0")
		w.Advance(time.Minute)
		expectServers(w, "3/3, 0: Streaming standby, 1: Streaming standby, 2: Ready primary")
		expectStops(w, "orders-db-0")
		checkReady(w, n)
		expectQuiet(w)

		n.switchOff("orders-db-2")
		w.Advance(time.Minute)
		giveUp(w)
		w.Advance(time.Minute)
		n.switchOn("orders-db-2")
		w.Advance(time.Minute)
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		checkReady(w, n)
	})
}

// If the volume of the primary is lost, a standby has the data. A person makes it the primary.
func TestAStandbyReplacesALostVolume(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-0")}
		w.Get(claim)
		w.Delete(claim.DeepCopy())
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-0")})
		w.Advance(time.Minute)
		expect(w, "Ready=False DataMissing")
		giveUp(w)
		w.Advance(time.Minute)
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		checkReady(w, n)
		expectQuiet(w)
	})
}

// A standby that had more than the new primary, but did not run when a person gave up the former one, cannot follow the new one. It copies the database again.
func TestAStandbyThatHasMoreThanThePrimaryIsCopiedAgain(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		n.connect("orders-db-1", false)
		w.Advance(time.Minute)
		n.lose("orders-db-2")
		n.switchOff("orders-db-0")
		w.Advance(time.Minute)
		giveUp(w)
		w.Advance(time.Minute)
		expectServers(w, "1/3, 0: NotReady , 1: Ready primary, 2: NotReady ")
		n.regain("orders-db-2")
		n.switchOn("orders-db-0")
		w.Advance(time.Minute)
		expectServers(w, "3/3, 0: Streaming standby, 1: Ready primary, 2: Streaming standby")
		expectStops(w, "orders-db-0", "orders-db-2")
		checkReady(w, n)
		expectQuiet(w)
	})
}

// A switchover whose primary is on a lost node does not end by itself. It is given up with the primary.
func TestASwitchoverIsGivenUpWithItsPrimary(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		n.off["orders-db-0"] = true
		w.Patch(ordersDB(), `{"spec":{"primary":1}}`)
		awaitPhase(w, "Stopping")
		n.switchOff("orders-db-0")
		w.Advance(time.Hour)
		giveUp(w)
		w.Advance(time.Minute)
		expectServers(w, "1/2, 0: NotReady , 1: Ready primary")
		n.switchOn("orders-db-0")
		w.Advance(time.Minute)
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		expect(w, "PrimaryAsRequested=True AsRequested")
		checkReady(w, n)
	})
}

// A request is refused if it names no primary, or one that accepts connections. It is removed, so it has no effect later.
func TestARequestToGiveUpAPrimaryIsRefused(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		for _, uid := range []string{"another", podUID(w, "orders-db-1"), podUID(w, "orders-db-0")} {
			annotate(w, uid)
			w.Advance(time.Minute)
			expectNoRequest(w)
		}
		events := &eventsv1.EventList{}
		if err := w.Client().List(w.Context(), events); err != nil {
			w.Fatal(err)
		}
		refused := slices.DeleteFunc(events.Items, func(one eventsv1.Event) bool { return one.Reason != "FailoverRefused" })
		if len(refused) != 3 {
			w.Errorf("%d requests are said to be refused, want 3", len(refused))
		}
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		expectStops(w)
		checkReady(w, n)
	})
}

// A status that was edited can have a promotion and no primary, and the terms can be lost too. A request to give up the primary is refused then, and the
// database goes on.
func TestARequestToGiveUpAPrimaryIsRefusedIfThereIsNone(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		w.Kill()
		for _, name := range []string{"orders-db-0", "orders-db-1"} {
			n.patch(&corev1.Pod{ObjectMeta: in(name)}, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, manifest.GrantAnnotation))
			n.patch(&corev1.PersistentVolumeClaim{ObjectMeta: in("data-" + name)}, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, manifest.TermAnnotation))
		}
		n.patchStatus(ordersDB(), `{"primary":null,"switchover":{"phase":"Promoting","from":"orders-db-0","to":"orders-db-1","uid":"another"}}`)
		annotate(w, podUID(w, "orders-db-0"))
		w.Restart()
		w.Advance(time.Minute)
		expectNoRequest(w)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		expectStops(w)
		checkReady(w, n)
		expectQuiet(w)
	})
}

// The command follows the message of the scheduler, which ends in a full stop.
func TestAFailoverIsOfferedInOneSentence(t *testing.T) {
	db, standbyPod := ordersDB(), &corev1.Pod{ObjectMeta: in("orders-db-1")}
	db.Status.DataVersion, db.Status.Primary = "16", &v1.Primary{Pod: "orders-db-0", UID: "first", Term: 1}
	standbyPod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	found := findings{observed: observed{standbys: []standby{{ordinal: 1, name: "orders-db-1", pod: standbyPod}}}}
	for _, message := range []string{"0/3 nodes are available: 3 node(s) had no room.", "0/3 nodes are available: 3 node(s) had no room"} {
		want := "0/3 nodes are available: 3 node(s) had no room; to make a standby the primary, without what only the Pod orders-db-0 has: " +
			"kubectl annotate --namespace default database orders-db " + failoverAnnotation + "=first"
		if got := withFailover(db, found, problem{"Unschedulable", message, false}).message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A request waits until a standby accepts connections. If the primary is back first, it is refused.
func TestARequestToGiveUpAPrimaryWaitsForAStandby(t *testing.T) {
	for title, back := range map[string]string{"the standby is back": "orders-db-1", "the primary is back": "orders-db-0"} {
		t.Run(title, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				n := replicated(w, 2)
				n.lose("orders-db-1")
				n.lose("orders-db-0")
				w.Advance(time.Minute)
				annotate(w, podUID(w, "orders-db-0"))
				w.Advance(time.Minute)
				expect(w, "Ready=False PrimaryNodeLost", "PrimaryAsRequested=False FailingOver")
				if back == "orders-db-1" {
					n.switchOff("orders-db-0")
				}
				n.regain(back)
				w.Advance(time.Minute)
				expectNoRequest(w)
				if back == "orders-db-1" {
					n.switchOn("orders-db-0")
				} else {
					n.regain("orders-db-1")
				}
				w.Advance(time.Minute)
				want := map[string]string{
					"orders-db-1": "2/2, 0: Streaming standby, 1: Ready primary", "orders-db-0": "2/2, 0: Ready primary, 1: Streaming standby",
				}
				expectServers(w, want[back])
				checkReady(w, n)
			})
		})
	}
}

// A failover waits for a standby that does not answer, and says so.
func TestAFailoverSaysForWhomItWaits(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		n.silent["orders-db-2"] = true
		n.switchOff("orders-db-0")
		w.Advance(time.Minute)
		giveUp(w)
		w.Advance(time.Minute)
		expectWaiting(w, "the standby orders-db-2 does not answer")
		n.silent["orders-db-2"] = false
		w.Advance(time.Minute)
		expect(w, "Ready=True DatabaseReady")
		expectNoRequest(w)
		n.switchOn("orders-db-0")
		w.Advance(time.Minute)
		checkReady(w, n)
	})
}

// The password of apps is not needed for a failover. The status offers one although that password is lost too.
func TestALostPasswordForbidsNoFailover(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		for _, name := range []string{"orders-db-app.g1", "orders-db-app"} {
			w.Delete(&corev1.Secret{ObjectMeta: in(name)})
		}
		w.Advance(time.Minute)
		expect(w, "Ready=False CredentialsMissing", "Available=True AcceptsConnections")
		n.switchOff("orders-db-0")
		w.Advance(time.Minute)
		expect(w, "Ready=False PrimaryNodeLost")
		giveUp(w)
		w.Advance(time.Minute)
		expect(w, "Ready=False CredentialsMissing", "Available=True AcceptsConnections")
		expectServers(w, "1/2, 0: NotReady , 1: Ready primary")
		n.switchOn("orders-db-0")
		w.Advance(time.Minute)
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		w.Patch(ordersDB(), `{"spec":{"primary":0}}`)
		w.Advance(time.Minute)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
	})
}

// Without the password of the monitor, no standby can be asked. The failover waits for the Secret, and says so.
func TestAFailoverNeedsThePasswordOfTheMonitor(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		kept := &corev1.Secret{ObjectMeta: in("orders-db-monitor.g1")}
		w.Get(kept)
		w.Delete(kept.DeepCopy())
		w.Delete(&corev1.Secret{ObjectMeta: in("orders-db-monitor")})
		n.switchOff("orders-db-0")
		w.Advance(time.Minute)
		giveUp(w)
		w.Advance(time.Minute)
		expectWaiting(w, "the Secret orders-db-monitor")
		kept.ResourceVersion, kept.UID = "", ""
		w.Create(kept)
		w.Advance(time.Minute)
		expectServers(w, "1/2, 0: NotReady , 1: Ready primary")
		n.switchOn("orders-db-0")
		w.Advance(time.Minute)
		checkReady(w, n)
	})
}

// expectWaiting expects that a failover waits, and that the status says for what.
func expectWaiting(w *einmaltest.World, what string) {
	w.Helper()
	expect(w, "PrimaryAsRequested=False FailingOver")
	db := ordersDB()
	w.Get(db)
	said := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionPrimaryAsRequested).Message
	if !strings.Contains(said, what) || db.Status.Primary.Pod != "orders-db-0" {
		w.Errorf("the primary is %s, and it says %q", db.Status.Primary.Pod, said)
	}
}

// A primary that only Kubernetes cannot reach goes on. As long as a standby gets something from it, a failover would lose what apps write, so it waits.
func TestAFailoverWaitsForTheEndOfThePrimary(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		n.lose("orders-db-0")
		w.Advance(time.Minute)
		giveUp(w)
		w.Advance(10 * time.Minute)
		expect(w, "Ready=False PrimaryNodeLost")
		expectWaiting(w, "still gets what the server in the Pod orders-db-0 writes")
		n.switchOff("orders-db-0")
		w.Advance(time.Minute)
		expectServers(w, "1/2, 0: NotReady , 1: Ready primary")
		n.switchOn("orders-db-0")
		w.Advance(time.Minute)
		checkReady(w, n)
	})
}
