package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// request asks for another primary.
func request(w *einmaltest.World, ordinal int) {
	w.Helper()
	w.Patch(ordersDB(), fmt.Sprintf(`{"spec":{"primary":%d}}`, ordinal))
	w.Advance(time.Minute)
}

// Another server becomes the primary, with everything that apps have written, and the former one is a standby then. Nothing is copied again.
func TestAnotherServerBecomesThePrimary(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		for _, ordinal := range []int{1, 2, 0} {
			request(w, ordinal)
			expect(w, "Ready=True DatabaseReady", "PrimaryAsRequested=True AsRequested", "StandbysStreaming=True Streaming", "Progressing=False Complete")
		}
		expectServers(w, "3/3, 0: Ready primary, 1: Streaming standby, 2: Streaming standby")
		checkReady(w, n)
		expectQuiet(w)
	})
}

// expectQuiet expects that a database at rest is not written.
func expectQuiet(w *einmaltest.World) {
	w.Helper()
	before := len(w.Writes())
	w.Advance(time.Hour)
	if after := w.Writes(); len(after) != before {
		w.Errorf("a database at rest was written: %v", after[before:])
	}
}

// A standby that does not have what the primary has does not become the primary: nothing is stopped, and the status says why. When it has, it does.
func TestAStandbyThatIsCutOffDoesNotBecomeThePrimary(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		n.connect("orders-db-1", false)
		w.Advance(time.Minute)
		before := podUID(w, "orders-db-0")
		request(w, 1)
		expect(w, "Ready=True DatabaseReady", "PrimaryAsRequested=False StandbyNotStreaming", "Progressing=True Disconnected")
		n.connect("orders-db-1", true)
		n.lag = smallLag
		w.Advance(time.Minute)
		expect(w, "Ready=True DatabaseReady", "PrimaryAsRequested=False StandbyBehind", "Progressing=True StandbyBehind")
		if podUID(w, "orders-db-0") != before {
			w.Errorf("the primary was stopped")
		}
		n.lag = 0
		w.Advance(time.Minute)
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		expect(w, "PrimaryAsRequested=True AsRequested")
	})
}

// A primary that ends without having written everything goes on. So does one whose standby loses its connection while it ends.
func TestASwitchoverThatWouldLoseDataFails(t *testing.T) {
	for title, hinder := range map[string]func(w *einmaltest.World, n *modelNode){
		"the primary is killed":     func(_ *einmaltest.World, n *modelNode) { n.killed = true },
		"the standby is cut off":    func(_ *einmaltest.World, n *modelNode) { n.deaf = true },
		"the Pod is deleted before": func(w *einmaltest.World, _ *modelNode) { w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-1")}) },
	} {
		t.Run(title, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				n := replicated(w, 2)
				w.Patch(ordersDB(), `{"spec":{"primary":1}}`)
				awaitPhase(w, "Stopping")
				hinder(w, n)
				w.Advance(5 * time.Minute)
				expect(w, "Ready=True DatabaseReady", "PrimaryAsRequested=False SwitchoverFailed", "Progressing=False SwitchoverFailed")
				expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
				checkReady(w, n)
				n.killed, n.deaf = false, false
				request(w, 0)
				expect(w, "PrimaryAsRequested=True AsRequested")
				request(w, 1)
				expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
			})
		})
	}
}

// A standby that has got the term becomes the primary, even if its Pod is replaced before it is promoted.
func TestAStandbyWithTheTermIsPromotedInItsNextPod(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		n.stays = true
		w.Patch(ordersDB(), `{"spec":{"primary":1}}`)
		awaitPhase(w, "Promoting")
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-1")})
		w.Advance(time.Minute)
		expect(w, "Ready=False SwitchingOver", "PrimaryAsRequested=False SwitchingOver", "Available=False NotReady")
		n.stays = false
		w.Advance(time.Minute)
		expectServers(w, "3/3, 0: Streaming standby, 1: Ready primary, 2: Streaming standby")
		checkReady(w, n)
	})
}

// awaitPhase waits until a switchover has a phase.
func awaitPhase(w *einmaltest.World, phase string) {
	w.Helper()
	for range 600 {
		db := ordersDB()
		if w.Get(db); db.Status.Switchover != nil && string(db.Status.Switchover.Phase) == phase {
			return
		}
		w.Advance(50 * time.Millisecond)
	}
	w.Fatalf("no switchover has the phase %s", phase)
}

// A status that is lost does not change who is the primary: the claims know it. This is also so in the middle of a switchover.
func TestALostStatusChangesNoPrimary(t *testing.T) {
	for _, phase := range []string{"", "Stopping", "Promoting"} {
		t.Run("phase "+phase, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				n := replicated(w, 3)
				request(w, 2)
				if phase != "" {
					n.stays = true
					w.Patch(ordersDB(), `{"spec":{"primary":1}}`)
					awaitPhase(w, phase)
					n.stays = false
				}
				w.Kill()
				n.patchStatus(ordersDB(), "null")
				w.Restart()
				w.Advance(2 * time.Minute)
				want := map[bool]string{
					true:  "3/3, 0: Streaming standby, 1: Streaming standby, 2: Ready primary",
					false: "3/3, 0: Streaming standby, 1: Ready primary, 2: Streaming standby",
				}
				expectServers(w, want[phase == ""])
				checkReady(w, n)
			})
		})
	}
}

// The primary is not among the servers that are too many: another one becomes the primary first.
func TestThePrimaryIsNotScaledAway(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		request(w, 2)
		w.Patch(ordersDB(), `{"spec":{"primary":null,"replicas":2}}`)
		w.Advance(2 * time.Minute)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		expect(w, "PrimaryAsRequested=True NotRequested")
		checkReady(w, n)
		if len(n.slots) != 1 {
			w.Errorf("the primary has the slots %v", n.slots)
		}
	})
}

// With another version, the standbys are restarted, and one of them becomes the primary. The former primary gets the version while it is stopped. A primary
// that the spec names stays the primary, and is restarted.
func TestAnotherVersionNeedsNoRestartOfThePrimary(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		n.apart = true
		w.Patch(ordersDB(), `{"spec":{"version":"16.4"}}`)
		w.Advance(5 * time.Minute)
		expect(w, "Ready=True DatabaseReady", "StandbysStreaming=False Disconnected")
		expectStops(w, "orders-db-1") // The others go on as long as it does not stream.
		n.apart = false
		n.connect("orders-db-1", true)
		w.Advance(5 * time.Minute)
		expectServers(w, "3/3, 0: Streaming standby, 1: Ready primary, 2: Streaming standby")
		expectStops(w, "orders-db-1", "orders-db-2", "orders-db-0")
		w.Patch(ordersDB(), `{"spec":{"version":"16.5","primary":1}}`)
		w.Advance(5 * time.Minute)
		expectServers(w, "3/3, 0: Streaming standby, 1: Ready primary, 2: Streaming standby")
		expectStops(w, "orders-db-1", "orders-db-2", "orders-db-0", "orders-db-0", "orders-db-2", "orders-db-1")
		expect(w, "PrimaryAsRequested=True AsRequested", "Progressing=False Complete")
		for ordinal := range 3 {
			pod := &corev1.Pod{ObjectMeta: in(fmt.Sprintf("orders-db-%d", ordinal))}
			w.Get(pod)
			if version := pod.Annotations[manifest.VersionAnnotation]; version != "16.5" {
				w.Errorf("the Pod %s has the version %s", pod.Name, version)
			}
		}
		checkReady(w, n)
		expectQuiet(w)
	})
}

// Standbys have unlogged tables without rows. So another version restarts a primary that has some, after its standbys, and a switchover that a person asks for
// says what is lost.
func TestUnloggedTablesKeepTheirRowsIfThePrimaryGetsAnotherVersion(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		n.unlogged = true
		w.Patch(ordersDB(), `{"spec":{"version":"16.4"}}`)
		w.Advance(5 * time.Minute)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		expectStops(w, "orders-db-1", "orders-db-0")
		expectEvents(w, "UnloggedTables", 0)
		w.Patch(ordersDB(), `{"spec":{"primary":1}}`)
		w.Advance(5 * time.Minute)
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		expectEvents(w, "UnloggedTables", 1)
		checkReady(w, n)
	})
}

// expectStops expects the Pods that the operator has deleted so far.
func expectStops(w *einmaltest.World, want ...string) {
	w.Helper()
	var got []string
	for _, write := range w.Writes() {
		if pod, deleted := strings.CutPrefix(write, "delete pods default/"); deleted {
			name, _, _ := strings.Cut(pod, " ")
			got = append(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("deleted Pods (-want +got):\n%s", diff)
	}
}

// A parameter that is lowered is lowered on all servers. A standby that still has the higher value does not become the primary: the others could not
// follow it.
func TestAParameterIsLoweredBeforeASwitchover(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 3)
		w.Patch(ordersDB(), `{"spec":{"primary":1,"parameters":{"max_connections":"50"}}}`)
		w.Advance(5 * time.Minute)
		expectServers(w, "3/3, 0: Streaming standby, 1: Ready primary, 2: Streaming standby")
		expect(w, "PrimaryAsRequested=True AsRequested", "ParametersApplied=True Applied", "Progressing=False Complete")
		for name, server := range n.servers {
			if server.connections != 50 {
				w.Errorf("the server in %s accepts %d connections", name, server.connections)
			}
		}
		checkReady(w, n)
		expectQuiet(w)
	})
}

// Each server that is the primary is restarted and repaired as the first one is.
func TestAnotherPrimaryIsServedAsTheFirst(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		request(w, 1)
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-1")})
		w.Advance(time.Minute)
		w.Patch(ordersDB(), `{"spec":{"version":"16.4","storage":"2Gi","parameters":{"max_connections":"50"}}}`)
		w.Advance(20 * time.Minute)
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		expect(w, "Ready=True DatabaseReady", "Progressing=False Complete", "ParametersApplied=True Applied", "StorageResizing=False AsRequested")
		checkReady(w, n)
		w.Delete(ordersDB())
		w.Advance(10 * time.Minute)
		again := ordersDB()
		again.Spec.Replicas = 2
		again.Spec.Version = "16.4"
		again.Spec.Storage.Set(2 << 30)
		w.Create(again)
		w.Advance(10 * time.Minute)
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		checkReady(w, n)
	})
}

// A Database can be deleted in the middle of a switchover. The Pod that was kept for it goes too.
func TestADatabaseIsDeletedDuringASwitchover(t *testing.T) {
	for _, policy := range []string{"Retain", "Delete"} {
		t.Run(policy, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				n := replicated(w, 2)
				n.stays = true
				w.Patch(ordersDB(), `{"spec":{"primary":1,"deletionPolicy":"`+policy+`"}}`)
				awaitPhase(w, "Stopping")
				w.Delete(ordersDB())
				w.Advance(5 * time.Minute)
				for _, name := range []string{"orders-db-0", "orders-db-1"} {
					if w.Get(&corev1.Pod{ObjectMeta: in(name)}) {
						w.Errorf("the Pod %s is left", name)
					}
				}
				if w.Get(ordersDB()) {
					w.Errorf("the Database is left")
				}
			})
		})
	}
}
