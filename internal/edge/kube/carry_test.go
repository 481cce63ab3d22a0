package kube_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

const (
	identity = "op.example.com"
	before   = `{"v":1,"uid":"u","base":"before"}`
	current  = `{"v":1,"uid":"u","base":"current"}`
)

// shelf is an API server, a user's client without any protection, and a client as handlers get it.
type shelf struct {
	server   *apiserver.Server
	user     client.Client
	handlers client.Client
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	manifest, err := os.ReadFile("../../../test/fixture/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := apiserver.ParseDefinitions(manifest)
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.New(apiserver.WithDefinitions(definitions))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	user, err := client.New(server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cachedTypes := &kube.CachedTypes{}
	for _, kind := range []string{"Widget", "Gadget"} {
		cachedTypes.Add(testKind(kind), &unstructured.Unstructured{})
	}
	cachedTypes.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &corev1.ConfigMap{})
	return shelf{server: server, user: user, handlers: kube.SplitClient{Client: user, Cached: cachedTypes}}
}

func testKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "test.einmal.dev", Version: "v1", Kind: kind}
}

// made creates an object with a record, which is then changed from before to current. It returns a copy of the object with either.
func (s shelf) made(t *testing.T, kind string, carrier record.Carrier) (stale, fresh *unstructured.Unstructured) {
	t.Helper()
	made := &unstructured.Unstructured{Object: object.Body{"spec": object.Body{"size": int64(1)}}}
	made.SetGroupVersionKind(testKind(kind))
	made.SetNamespace("default")
	made.SetName("x")
	if err := s.user.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	s.write(t, made, carrier, before)
	stale = made.DeepCopy()
	s.write(t, made, carrier, current)
	return stale, made
}

// write sets the record as the operator does.
func (s shelf) write(t *testing.T, target client.Object, carrier record.Carrier, text string) {
	t.Helper()
	merge, err := json.Marshal(object.With(object.Body{}, carrier.Path(identity), text))
	if err != nil {
		t.Fatal(err)
	}
	if carrier == record.Status {
		err = s.user.Status().Patch(t.Context(), target, client.RawPatch(types.MergePatchType, merge))
	} else {
		err = s.user.Patch(t.Context(), target, client.RawPatch(types.MergePatchType, merge))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// holds checks the record, the size and the phase on the API server.
func (s shelf) holds(t *testing.T, like *unstructured.Unstructured, carrier record.Carrier, size int64, phase string) {
	t.Helper()
	found := like.DeepCopy()
	if err := s.user.Get(t.Context(), client.ObjectKeyFromObject(like), found); err != nil {
		t.Fatal(err)
	}
	kept, _ := object.Get(found.Object, "spec", "size")
	got := []any{object.Text(found.Object, carrier.Path(identity)...), kept, object.Text(found.Object, "status", "phase")}
	if diff := cmp.Diff([]any{current, size, phase}, got); diff != "" {
		t.Errorf("record, size, phase: %s", diff)
	}
}

func without(copied *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: record.Cut(copied.DeepCopy().Object)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func set(in *unstructured.Unstructured, value any, path ...string) {
	in.Object = object.With(in.Object, path, value)
}

// A full update of the handled object through c.Client carries the current record over.
func TestAFullUpdateOfAHandledObjectKeepsItsRecord(t *testing.T) {
	for kind, carrier := range map[string]record.Carrier{"Widget": record.Status, "Gadget": record.Annotation} {
		t.Run("record in the "+string(carrier), func(t *testing.T) {
			s := newShelf(t)
			stale, fresh := s.made(t, kind, carrier)
			stripped := without(fresh)
			set(stripped, int64(2), "spec", "size")
			must(t, s.handlers.Update(t.Context(), stripped))
			s.holds(t, fresh, carrier, 2, "")
			if got, _ := object.Get(stripped.Object, "spec", "size"); got != int64(2) || stripped.GetResourceVersion() == fresh.GetResourceVersion() {
				t.Errorf("the copy does not have the response: %v", stripped.Object)
			}
			old := stripped.DeepCopy()
			set(old, before, carrier.Path(identity)...)
			set(old, int64(3), "spec", "size")
			must(t, s.handlers.Update(t.Context(), old))
			s.holds(t, fresh, carrier, 3, "")
			status := without(old)
			set(status, "new", "status", "phase")
			must(t, s.handlers.Status().Update(t.Context(), status))
			s.holds(t, fresh, carrier, 3, "new")
			body := without(status)
			set(body, "newer", "status", "phase")
			must(t, s.handlers.Status().Update(t.Context(), status, client.WithSubResourceBody(body)))
			s.holds(t, fresh, carrier, 3, "newer")
			if err := s.handlers.Update(t.Context(), stale); !apierrors.IsConflict(err) {
				t.Errorf("a stale copy: got %v, want a conflict", err)
			}
			s.holds(t, fresh, carrier, 3, "newer")
		})
	}
}

// A 404 that is not about the object does not mean that the object is gone: a handler that ignores "not found" must not mistake it for that.
func TestNotFoundOfAnotherCauseIsNotNotFoundForHandlers(t *testing.T) {
	s := newShelf(t)
	_, fresh := s.made(t, "Widget", record.Status)
	requests := map[string]func() error{
		"get": func() error { // A live read: this form is not cached.
			metadata := &metav1.PartialObjectMetadata{}
			metadata.SetGroupVersionKind(testKind("Widget"))
			return s.handlers.Get(t.Context(), client.ObjectKeyFromObject(fresh), metadata)
		},
		"delete": func() error { return s.handlers.Delete(t.Context(), fresh.DeepCopy()) },
		"update": func() error { return s.handlers.Update(t.Context(), fresh.DeepCopy()) },
		"patch": func() error {
			return s.handlers.Patch(t.Context(), fresh.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"update the status": func() error { return s.handlers.Status().Update(t.Context(), fresh.DeepCopy()) },
		"patch the status": func() error {
			return s.handlers.Status().Patch(t.Context(), fresh.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
	}
	remove := s.server.Intercept(func(answer http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(answer, "404 page not found", http.StatusNotFound)
	})
	for name, request := range requests {
		if err := request(); err == nil || apierrors.IsNotFound(err) || !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%s: got %v, want an error that says that the kind is not served", name, err)
		}
	}
	remove()
	must(t, s.user.Delete(t.Context(), fresh.DeepCopy()))
	for name, request := range requests {
		if err := request(); !apierrors.IsNotFound(err) {
			t.Errorf("%s of an object that does not exist: got %v, want not found", name, err)
		}
	}
}

// A merge patch is the difference of two copies. With a copy that the handler got and one that it has read itself, it would remove or
// revert the record.
func TestAMergePatchFromCopiesKeepsTheRecord(t *testing.T) {
	for kind, carrier := range map[string]record.Carrier{"Widget": record.Status, "Gadget": record.Annotation} {
		t.Run("record in the "+string(carrier), func(t *testing.T) {
			s := newShelf(t)
			stale, fresh := s.made(t, kind, carrier)
			for i, copies := range [][2]*unstructured.Unstructured{{fresh, without(fresh)}, {without(fresh), stale}, {fresh, stale}} {
				size := int64(i + 5)
				from, to := copies[0].DeepCopy(), copies[1].DeepCopy()
				to.SetResourceVersion(from.GetResourceVersion())
				set(to, size, "spec", "size")
				must(t, s.handlers.Patch(t.Context(), to, client.MergeFrom(from)))
				s.holds(t, fresh, carrier, size, "")
			}
			for _, phase := range []string{"one", "two"} {
				to := fresh.DeepCopy()
				set(to, object.Body{"phase": phase}, "status")
				must(t, s.handlers.Status().Patch(t.Context(), to, client.MergeFrom(fresh)))
				s.holds(t, fresh, carrier, 7, phase)
			}
			bare := fresh.DeepCopy()
			unstructured.RemoveNestedField(bare.Object, "status")
			bare.SetAnnotations(nil)
			must(t, s.handlers.Patch(t.Context(), bare.DeepCopy(), client.MergeFrom(fresh)))
			must(t, s.handlers.Status().Patch(t.Context(), bare, client.MergeFrom(fresh), client.WithSubResourceBody(bare.DeepCopy())))
			want := ""
			if carrier == record.Annotation {
				want = "two" // Its copies have no status, so the patch does not change it.
			}
			s.holds(t, fresh, carrier, 7, want)
		})
	}
}

// The API server accepts a copy of a built-in kind without a resource version. A record that is written between the read and the write
// must stay too.
func TestAnUnconditionalUpdateKeepsARecordWrittenMeanwhile(t *testing.T) {
	s := newShelf(t)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: map[string]string{"k": "1"}}
	if err := s.user.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	s.write(t, config.DeepCopy(), record.Annotation, before)
	raced := 0
	remove := s.server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut && raced == 0 {
			raced++
			s.write(t, config.DeepCopy(), record.Annotation, current)
		}
		next.ServeHTTP(w, r)
	})
	defer remove()
	update := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: map[string]string{"k": "2"}}
	if err := s.handlers.Update(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	found := &corev1.ConfigMap{}
	if err := s.user.Get(t.Context(), client.ObjectKeyFromObject(config), found); err != nil {
		t.Fatal(err)
	}
	if got := found.Annotations[identity+"/record"]; raced != 1 || got != current || found.Data["k"] != "2" || update.UID != found.UID {
		t.Errorf("after %d races: record %q, data %v, uid %q", raced, got, found.Data, update.UID)
	}
}

func TestWhatIsNotHandledIsWrittenAsItIs(t *testing.T) {
	s := newShelf(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "x", Namespace: "default", Annotations: map[string]string{identity + "/record": before},
	}}
	if err := s.user.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	secret.Annotations = nil
	if err := s.handlers.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if found := (&corev1.Secret{}); s.user.Get(t.Context(), client.ObjectKeyFromObject(secret), found) != nil || len(found.Annotations) > 0 {
		t.Errorf("annotations %v", found.Annotations)
	}
	gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: "default"}}
	if err := s.handlers.Update(t.Context(), gone); !apierrors.IsNotFound(err) {
		t.Errorf("an update of an object that does not exist: %v", err)
	}
}
