package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/einmaltest"
)

// run is what runs: the image and the version of the status, and the term of the Pod that may accept writes.
type run struct {
	image, version string
	term           int64
}

func runningIn(w *einmaltest.World) run {
	w.Helper()
	db := ordersDB()
	w.Get(db)
	return run{db.Status.Image, db.Status.Version, db.Status.Primary.Term}
}

// A change of the minor version or of the image restarts the server once, with the data that it has. Other changes of the Pod wait for the next one.
func TestAnotherVersionOrImageRestartsTheServer(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		for _, step := range []struct {
			patch, progress string
			want            run
		}{
			{`{"spec":{"version":"16.4"}}`, "Complete", run{"postgres:16.4", "16.4", 2}},
			{`{"spec":{"version":"16.3"}}`, "Complete", run{"postgres:16.3", "16.3", 3}},
			{`{"spec":{"image":"example.com/pg:16"}}`, "Complete", run{"example.com/pg:16", "16.3", 4}},
			{`{"spec":{"version":"17"}}`, "VersionNotSupported", run{"example.com/pg:16", "16.3", 4}},
			{`{"spec":{"version":"16.3","resources":{"limits":{"memory":"2Gi"}}}}`, "RestartPending", run{"example.com/pg:16", "16.3", 4}},
			{`{"spec":{"version":"16.4"}}`, "Complete", run{"example.com/pg:16", "16.4", 5}},
			{`{"spec":{"image":null}}`, "RestartPending", run{"example.com/pg:16", "16.4", 5}},
		} {
			w.Patch(ordersDB(), step.patch)
			w.Advance(time.Minute)
			if got := runningIn(w); got != step.want {
				w.Errorf("%s: it runs %+v, want %+v", step.patch, got, step.want)
			}
			expect(w, "Progressing=False "+step.progress)
		}
		checkReady(w, n)
		if said := restarts(w); len(said) != 4 || !strings.Contains(said[0], "version 16.4 and the image postgres:16.4") {
			w.Errorf("the events are %q", said)
		}
	})
}

// restarts returns the texts of the events about restarts.
func restarts(w *einmaltest.World) []string {
	w.Helper()
	events := &corev1.EventList{}
	if err := w.Client().List(w.Context(), events); err != nil {
		w.Fatal(err)
	}
	var said []string
	for _, event := range events.Items {
		if event.Reason == "Restarting" {
			said = append(said, event.Message)
		}
	}
	return said
}

// A Pod whose image cannot be pulled is replaced when the spec names another image, or none.
func TestAPodWhoseImageCannotBePulledIsReplaced(t *testing.T) {
	for _, mended := range []string{`"example.com/pg:16.4"`, "null"} {
		t.Run(mended, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				n := create(w)
				n.missing = "example.com/typo:16"
				w.Patch(ordersDB(), `{"spec":{"image":"example.com/typo:16"}}`)
				w.Advance(time.Minute)
				expect(w, "Ready=False ImageNotAvailable")
				w.Patch(ordersDB(), fmt.Sprintf(`{"spec":{"image":%s}}`, mended))
				w.Advance(time.Minute)
				checkReady(w, n)
			})
		})
	}
}

// An operator that is started with another image for all databases restarts none of them.
func TestAnotherImageForAllRestartsNothing(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		w.Kill()
		n.images.postgresql = "example.com/pg:{version}"
		w.Restart()
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		expect(w, "Progressing=False RestartPending")
		if got, want := runningIn(w), (run{"postgres:16", "16", 1}); got != want {
			w.Errorf("it runs %+v, want %+v", got, want)
		}
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-0")})
		w.Advance(time.Minute)
		if got, want := runningIn(w), (run{"example.com/pg:16", "16", 2}); got != want {
			w.Errorf("the next Pod runs %+v, want %+v", got, want)
		}
	})
}

// A standby that does not answer may need a restart too. Until it answers, the primary is not restarted for what it would have to get first.
func TestAStandbyThatDoesNotAnswerMayNeedARestart(t *testing.T) {
	for title, patch := range map[string]string{
		"parameter": `{"spec":{"parameters":{"max_connections":"200"}}}`,
		"version":   `{"spec":{"version":"16.4"}}`,
	} {
		t.Run(title, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				n := replicated(w, 2)
				n.silent["orders-db-1"] = true
				w.Advance(time.Minute)
				before := podUID(w, "orders-db-0")
				w.Patch(ordersDB(), patch)
				w.Advance(10 * time.Minute)
				expect(w, "Ready=True DatabaseReady", "Progressing=True StandbyNotAnswering")
				if podUID(w, "orders-db-0") != before {
					w.Errorf("the primary was restarted")
				}
				n.silent["orders-db-1"] = false
				w.Advance(10 * time.Minute)
				expect(w, "Ready=True DatabaseReady", "Progressing=False Complete")
				checkReady(w, n)
			})
		})
	}
}
