package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/einmaltest"
)

// deleteClaim deletes the claim of a server, as a person does. Its finalizer stands for the one of Kubernetes, which keeps it as long as a Pod uses it.
func deleteClaim(w *einmaltest.World, name string) {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: in(name)}
	w.Patch(claim, `{"metadata":{"finalizers":["example.com/in-use"]}}`)
	w.Delete(claim)
	w.AllowDeleting()
	w.Advance(time.Minute)
}

// A claim that is being deleted is gone when its Pod ends, and the data with it. So nothing ends the Pod: neither another version, nor a parameter, nor
// another image. The status says how to keep the data.
func TestNoPodIsRestartedWhileItsClaimIsBeingDeleted(t *testing.T) {
	for name, patch := range map[string]string{
		"version":   `{"spec":{"version":"16.4"}}`,
		"image":     `{"spec":{"image":"example.com/pg:16"}}`,
		"parameter": `{"spec":{"parameters":{"max_connections":"55"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				n := create(w)
				deleteClaim(w, "data-orders-db-0")
				before, pod := runningIn(w), podUID(w, "orders-db-0")
				w.Patch(ordersDB(), patch)
				w.Advance(10 * time.Minute)
				if got := runningIn(w); got != before || podUID(w, "orders-db-0") != pod {
					w.Errorf("it runs %+v, want %+v and the same Pod", got, before)
				}
				expect(w, "Ready=True DatabaseReady", "Degraded=True ClaimDeleted")
				checkReady(w, n)
			})
		})
	}
}

// The primary does not change while the claim of one of the servers is being deleted: the Pod of the former one would end.
func TestThePrimaryDoesNotChangeWhileAClaimIsBeingDeleted(t *testing.T) {
	for _, claim := range []string{"data-orders-db-0", "data-orders-db-1"} {
		t.Run(claim, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				replicated(w, 2)
				deleteClaim(w, claim)
				before := podUID(w, "orders-db-0")
				request(w, 1)
				expect(w, "Ready=True DatabaseReady", "PrimaryAsRequested=False ClaimDeleted", "Degraded=True ClaimDeleted")
				if podUID(w, "orders-db-0") != before {
					w.Errorf("the Pod of the primary was deleted")
				}
			})
		})
	}
}

// A claim that is deleted when a switchover has begun, and before the Pod of the primary is deleted, ends the switchover.
func TestASwitchoverThatHasBegunEndsWithTheDeletionOfAClaim(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		before := podUID(w, "orders-db-0")
		w.Patch(ordersDB(), `{"spec":{"primary":1}}`)
		awaitPhase(w, "Stopping")
		w.Kill()
		deleteClaim(w, "data-orders-db-0")
		w.Restart()
		w.Advance(10 * time.Minute)
		expect(w, "Ready=True DatabaseReady", "PrimaryAsRequested=False ClaimDeleted", "Degraded=True ClaimDeleted")
		if podUID(w, "orders-db-0") != before {
			w.Errorf("the Pod of the primary was deleted")
		}
		checkReady(w, n)
	})
}
