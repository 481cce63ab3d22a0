package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// replicated starts the operator and the node, and creates a Database with some servers.
func replicated(w *einmaltest.World, replicas int32) *modelNode {
	n := start(w)
	db := ordersDB()
	db.Spec.Replicas = replicas
	w.Create(db)
	w.Advance(10 * time.Minute)
	return n
}

// scale changes the number of servers.
func scale(w *einmaltest.World, replicas int) {
	w.Helper()
	w.Patch(ordersDB(), fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	w.Advance(time.Minute)
}

// servers returns what the status says of the servers, with the roles that the labels of their Pods give them.
func servers(w *einmaltest.World) string {
	w.Helper()
	db := ordersDB()
	w.Get(db)
	said := []string{fmt.Sprintf("%d/%d", db.Status.ReadyReplicas, db.Status.Replicas)}
	for _, one := range db.Status.Instances {
		pod := &corev1.Pod{ObjectMeta: in(one.Pod)}
		w.Get(pod)
		text := fmt.Sprintf("%s: %s %s", strings.TrimPrefix(one.Pod, "orders-db-"), one.State, pod.Labels[manifest.RoleLabel])
		if one.Lag != nil {
			text += " " + one.Lag.String()
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

func expectServers(w *einmaltest.World, want string) {
	w.Helper()
	if diff := cmp.Diff(want, servers(w)); diff != "" {
		w.Errorf("servers (-want +got):\n%s", diff)
	}
}

// podUID returns the uid of a Pod of the Database.
func podUID(w *einmaltest.World, name string) string {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: in(name)}
	w.Get(pod)
	return string(pod.UID)
}

// More servers are standbys of the first one. One that is removed leaves its volume and no slot, and is copied again when it returns.
func TestADatabaseIsScaled(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		checkReady(w, n)
		expect(w, "StandbysStreaming=True Streaming", "Progressing=False Complete", "Degraded=False AsExpected")
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		scale(w, 4)
		expectServers(w, "4/4, 0: Ready primary, 1: Streaming standby, 2: Streaming standby, 3: Streaming standby")
		scale(w, 2)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		if !w.Get(&corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-3")}) {
			w.Errorf("the volume of a removed standby was deleted")
		}
		if len(n.slots) != 1 {
			w.Errorf("the primary has the slots %v", n.slots)
		}
		scale(w, 3)
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		scale(w, 1)
		expectServers(w, "1/1, 0: Ready primary")
		expect(w, "StandbysStreaming=True NoStandbys")
		checkReady(w, n)
		expectQuiet(w)
	})
}

// A StatefulSet can be deleted at any moment of a switchover, with its Pods or without them. The servers come back with their volumes. A Pod that a switchover
// has stopped has no StatefulSet then that controls it.
func TestServersComeBackWhenTheirStatefulSetIsDeleted(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		for _, after := range []time.Duration{0, step / 4, step, 3 * step} {
			t.Run(fmt.Sprintf("%s after %s", policy, after), func(t *testing.T) {
				t.Parallel()
				einmaltest.Run(t, func(w *einmaltest.World) {
					n := replicated(w, 2)
					w.Patch(ordersDB(), `{"spec":{"primary":1}}`)
					w.Advance(after)
					if err := w.Client().Delete(w.Context(), &appsv1.StatefulSet{ObjectMeta: in("orders-db")}, client.PropagationPolicy(policy)); err != nil {
						w.Error(err)
					}
					w.Advance(20 * time.Minute)
					checkReady(w, n)
					checkSwitchover(w)
				})
			})
		}
	}
}

// checkSwitchover expects that the server 1 of two is the primary, or that the switchover has failed and said so.
func checkSwitchover(w *einmaltest.World) {
	w.Helper()
	db := ordersDB()
	w.Get(db)
	if db.Status.Switchover == nil {
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		return
	}
	expect(w, "PrimaryAsRequested=False SwitchoverFailed")
	expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
}

// A standby that is cut off or far behind leaves the read-only Service, and returns when it has what the primary has. If the primary is away, it stays.
func TestAStandbyThatIsCutOffServesNoReads(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		n.connect("orders-db-1", false)
		w.Advance(2 * pollInterval)
		expectServers(w, "1/2, 0: Ready primary, 1: Disconnected ")
		expect(w, "Ready=True DatabaseReady", "StandbysStreaming=False Disconnected", "Degraded=True Disconnected", "Progressing=True Disconnected")
		n.connect("orders-db-1", true)
		w.Advance(2 * pollInterval)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		for _, lag := range []struct {
			bytes int64
			want  string
		}{
			{1 << 20, "standby"}, {17 << 20, "standby 32Mi"}, {300 << 20, " 512Mi"}, {100 << 20, " 128Mi"}, {0, "standby"},
		} {
			n.lag = lag.bytes
			w.Advance(2 * pollInterval)
			expectServers(w, "2/2, 0: Ready primary, 1: Streaming "+lag.want)
		}
		n.cut = true
		w.Advance(10 * time.Minute)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		n.cut = false
		w.Advance(time.Minute)
		checkReady(w, n)
		expectQuiet(w)
	})
}

// A standby is made again when its volume is lost, and when the primary has deleted what it has missed. The primary goes on.
func TestAStandbyIsMadeAgain(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		first, second := podUID(w, "orders-db-0"), podUID(w, "orders-db-2")
		w.Delete(&corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-1")})
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-1")})
		w.Advance(time.Minute)
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		n.slots["einmal_2"] = false
		w.Advance(time.Minute)
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		delete(n.slots, "einmal_1")
		w.Advance(time.Minute)
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		if podUID(w, "orders-db-0") != first || podUID(w, "orders-db-2") == second {
			w.Errorf("the wrong Pods were replaced")
		}
		checkReady(w, n)
	})
}

// Standbys are restarted before the primary, and again after it if a parameter is lowered. An image that cannot be pulled keeps the primary and the other standbys running.
func TestStandbysAreRestartedFirst(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		n.missing = "example.com/typo:16"
		before := podUID(w, "orders-db-0") + podUID(w, "orders-db-2")
		w.Patch(ordersDB(), `{"spec":{"image":"example.com/typo:16"}}`)
		w.Advance(10 * time.Minute)
		expect(w, "Ready=True DatabaseReady", "StandbysStreaming=False ImageNotAvailable", "Progressing=False ImageNotAvailable", "Degraded=True ImageNotAvailable")
		if after := podUID(w, "orders-db-0") + podUID(w, "orders-db-2"); after != before {
			w.Errorf("a server was stopped for an image that cannot be pulled")
		}
		w.Patch(ordersDB(), `{"spec":{"image":null,"version":"16.4","parameters":{"max_connections":"50"}}}`)
		w.Advance(10 * time.Minute)
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		expect(w, "Progressing=False Complete", "ParametersApplied=True Applied")
		expectStops(w, "orders-db-1", "orders-db-1", "orders-db-2", "orders-db-0", "orders-db-1", "orders-db-2")
		checkReady(w, n)
	})
}

// A Pod of a standby whose grant or role is edited gets it again.
func TestWhatStandbysAreIsRepaired(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		w.Patch(&corev1.Pod{ObjectMeta: in("orders-db-1")}, `{"metadata":{"annotations":{"database.einmal.dev/grant":"x 1"},"labels":{"database.einmal.dev/role":"primary"}}}`)
		w.Advance(time.Minute)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		w.Patch(&corev1.Pod{ObjectMeta: in("orders-db-1")}, `{"metadata":{"annotations":{"database.einmal.dev/grant":"`+podUID(w, "orders-db-1")+` 9"}}}`)
		w.Patch(&corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-1")}, `{"metadata":{"annotations":{"database.einmal.dev/term":"9"}}}`)
		w.Advance(time.Minute)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		n.connect("orders-db-1", false)
		w.Advance(time.Minute)
		w.Patch(&corev1.Pod{ObjectMeta: in("orders-db-1")}, `{"metadata":{"labels":{"database.einmal.dev/role":"primary"}}}`)
		w.Advance(time.Minute)
		expectServers(w, "1/2, 0: Ready primary, 1: Disconnected ")
		n.connect("orders-db-1", true)
	})
}

// A claim of others with the name of a new standby's is not used. It keeps the other servers from nothing.
func TestAClaimOfOthersOnlyKeepsItsStandbyAway(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		foreign := n.claimOf(n.setOf("orders-db"), 2)
		foreign.Labels = nil
		w.Create(foreign)
		w.Patch(ordersDB(), `{"spec":{"replicas":3}}`)
		w.Advance(time.Minute)
		expect(w, "Ready=True DatabaseReady", "StandbysStreaming=False ObjectRefused", "Degraded=True ObjectRefused", "Progressing=False ObjectRefused")
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-0")})
		w.Advance(time.Minute)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby, 2: NotReady ")
		if w.Get(&corev1.Pod{ObjectMeta: in("orders-db-2")}) {
			w.Errorf("a claim of others was used")
		}
		w.Delete(foreign)
		w.Advance(10 * time.Minute)
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		checkReady(w, n)
	})
}

// A claim of a standby that is no longer the Database's is not used for its next Pod, and no other server is stopped for that.
func TestAStandbyDoesNotTouchAVolumeOfOthers(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		before := podUID(w, "orders-db-0") + podUID(w, "orders-db-2")
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-1")}
		w.Patch(claim, `{"metadata":{"labels":null,"annotations":null}}`)
		delete(n.volumes, claim.UID)
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-1")})
		w.Advance(10 * time.Minute)
		expect(w, "Ready=True DatabaseReady", "StandbysStreaming=False ObjectRefused", "Degraded=True ObjectRefused")
		expectServers(w, "2/3, 0: Ready primary, 1: NotReady , 2: Streaming standby")
		if after := podUID(w, "orders-db-0") + podUID(w, "orders-db-2"); after != before || n.volumes[claim.UID] != nil {
			w.Errorf("another server was stopped: %t, the volume has data: %t", after != before, n.volumes[claim.UID] != nil)
		}
		w.Patch(claim, `{"metadata":{"labels":{"database.einmal.dev/name":"orders-db"}}}`)
		w.Advance(10 * time.Minute)
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		checkReady(w, n)
	})
}

// The handlers that probe servers do not do so in the same reconciliation, because the second answer could contradict the first.
func TestServersAreProbedOnceInAReconciliation(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		n.unsteady = true
		db := ordersDB()
		db.Spec.Replicas = 2
		w.Create(db)
		w.Advance(10 * time.Minute)
		w.Restart()
		w.Advance(time.Minute)
		expectEvents(w, "StatusConflict", 0)
		checkReady(w, n)
	})
}
