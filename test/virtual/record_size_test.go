package virtual_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// annotationsLimit is how many bytes the annotations of an object may have.
const annotationsLimit = 256 << 10

// annotated is a gadget with an annotation that leaves so many bytes for others. What it says compresses to a tenth.
func annotated(name string, left int) *unstructured.Unstructured {
	one := fixture.Carriers()[1].Object(name)
	noise, seed := make([]byte, 18<<10), rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(seed.Uint32())
	}
	text := base64.StdEncoding.EncodeToString(noise)
	size := annotationsLimit - len("note") - left
	one.SetAnnotations(map[string]string{"note": strings.Repeat(text, size/len(text)+1)[:size]})
	return one
}

// Annotations that nearly fill an object leave no room for a record with what its handlers have seen: then it has digests of
// that, and what was done is known to the next process.
func TestARecordFitsIntoAnObjectThatIsNearlyFull(t *testing.T) {
	use, j, log := fixture.Carriers()[1], &fixture.Journal{}, fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) { use.Declare(op, fixture.Plan{Journal: j}) }, func(t *testing.T, w *virtualWorld) {
		one := annotated("one", 22<<10)
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		if failed := log.Count("msg~reconcile failed"); failed > 0 {
			t.Errorf("%d passes have failed", failed)
		}
		w.restart(func() {})
		w.Pass(time.Minute)
		w.merge(t, one, `{"spec":{"size":2}}`)
		w.Pass(time.Minute)
		w.restart(func() {})
		w.Pass(time.Minute)
		text := w.storedRecord(t, use)
		if !strings.Contains(text, `"views"`) || strings.Contains(text, `"packed"`) {
			t.Errorf("the record is %.200s, want digests alone", text)
		}
	})
	if diff := cmp.Diff([]string{"make (create, attempt 1)", "resize (update, attempt 1)"}, j.Of("one")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A record that does not fit does not block the deletion of its object: Einmal removes the finalizer when the delete handler is done, and does
// not call the handler again while another client keeps the object.
func TestADeletionGoesOnWithoutRoomForTheRecord(t *testing.T) { //nolint:gocognit // One story, told row by row.
	for _, holds := range []bool{false, true} {
		t.Run(fmt.Sprint("another finalizer: ", holds), func(t *testing.T) {
			use, j := fixture.Carriers()[1], &fixture.Journal{}
			virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { use.Declare(op, fixture.Plan{Journal: j, OnDelete: true}) }, func(t *testing.T, w *virtualWorld) {
				one := annotated("one", 8)
				if holds {
					one.SetFinalizers([]string{foreignFinalizer})
				}
				fixture.Must(t, w.User.Create(t.Context(), one))
				w.Pass(5 * time.Second)
				fixture.Must(t, w.User.Delete(t.Context(), one))
				w.Pass(time.Minute)
				err := w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one)
				if gone := client.IgnoreNotFound(err) == nil && err != nil; gone == holds {
					t.Errorf("the object is gone: %t", gone)
				}
				if holds && !cmp.Equal(one.GetFinalizers(), []string{foreignFinalizer}) {
					t.Errorf("finalizers: %q", one.GetFinalizers())
				}
				w.restart(func() {})
				w.Pass(time.Minute)
			})
			if diff := cmp.Diff([]string{"make (create, attempt 1)", "unmake (delete, attempt 1)"}, j.Of("one")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
