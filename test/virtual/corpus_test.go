package virtual_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// keptRecord is a record that a release left in an object on which nothing was to do; see
// internal/core/record/testdata/README.md.
type keptRecord struct {
	Record   string
	Handlers []string
	Essence  map[string]any
	Marked   bool
	Recreate string
	Decided  map[string]struct{ Cause string }
}

func readKeptRecord(t *testing.T, file string) keptRecord {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept keptRecord
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return kept
}

// Every later release resumes the records of each release: no handler runs, nothing is written.
func TestAnOperatorResumesWhatEachReleaseLeft(t *testing.T) {
	kinds, err := apiserver.ParseDefinitions(fixture.CRDs())
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../internal/core/record/testdata/*/closed-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		kept := readKeptRecord(t, file)
		if kept.Decided["nothing"].Cause != "noop" {
			continue // A process that has just started has something to do by itself: resume handlers.
		}
		for _, use := range fixture.Carriers() {
			t.Run(filepath.Base(file)+" in the "+use.Name, func(t *testing.T) {
				t.Parallel()
				server, err := apiserver.New(apiserver.WithDefinitions(kinds))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(server.Close)
				kept.place(t, server, use)
				kept.resume(t, server, use)
			})
		}
	}
}

// place makes the object as the release left it.
func (k keptRecord) place(t *testing.T, server *apiserver.Server, use fixture.Carrier) {
	t.Helper()
	user, err := client.New(server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	user = client.WithFieldOwner(user, fixture.Identity) // The operator has written the record.
	made := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(k.Essence)}
	made.SetAPIVersion(fixture.Group + "/v1")
	made.SetKind(use.Kind)
	made.SetNamespace("default")
	made.SetName("kept")
	if k.Marked {
		made.SetFinalizers([]string{fixture.Identity + "/finalizer"})
	}
	annotate := func(key, value string) {
		annotations := made.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		made.SetAnnotations(annotations)
	}
	if k.Recreate != "" {
		annotate(fixture.Identity+"/recreate", k.Recreate)
	}
	wanted := made.DeepCopy()
	if err := user.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	record := strings.Replace(k.Record, `"uid":"uid"`, fmt.Sprintf(`"uid":%q`, made.GetUID()), 1)
	if status, has := wanted.Object["status"]; has {
		made.Object["status"] = status
	}
	if use.Name == "status" {
		if err := unstructured.SetNestedField(made.Object, record, "status", "records", fixture.Identity); err != nil {
			t.Fatal(err)
		}
	}
	if err := user.Status().Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if use.Name == "annotation" {
		annotate(fixture.Identity+"/record", record)
		if err := user.Update(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	if use.Record(made) != record {
		t.Fatalf("the API server made the record %q", use.Record(made))
	}
}

// resume runs an operator with the release's handlers until it has looked at the object.
func (k keptRecord) resume(t *testing.T, server *apiserver.Server, use fixture.Carrier) {
	t.Helper()
	var runs, writes atomic.Int32
	server.Intercept(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodGet {
			t.Logf("written: %s %s", r.Method, r.URL)
			writes.Add(1)
		}
		next.ServeHTTP(w, r)
	})
	log := fixture.NewLog(t)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	if use.Name == "status" {
		declareKept(einmal.For[fixture.Widget](op), k.Handlers, &runs)
	} else {
		declareKept(einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind)), k.Handlers, &runs)
	}
	stop := fixture.Run(t, op, server.Config(), einmal.RunOptions{SingleReplica: true})
	cluster.Until(t, "the object is looked at", func() bool { return log.Count("msg~watching, ") > 0 })
	stop()
	if runs.Load() != 0 || writes.Load() != 0 || log.Count("msg~all objects are up to date") == 0 {
		t.Errorf("%d handlers ran and there were %d writes, want none", runs.Load(), writes.Load())
	}
}

// declareKept declares handlers as the corpus lists them: an id, a verb and fields.
func declareKept[T any](kind *einmal.Kind[T], handlers []string, runs *atomic.Int32) {
	call := func(context.Context, *einmal.Change[T]) error {
		runs.Add(1)
		return nil
	}
	for _, declared := range handlers {
		words := strings.Fields(declared)
		id, fields := words[0], words[2:]
		switch {
		case words[1] == "create" && len(fields) > 0:
			kind.OnCreate(id, call, einmal.Fields(fields...))
		case words[1] == "create":
			kind.OnCreate(id, call)
		case words[1] == "update" && len(fields) > 0:
			kind.OnUpdate(id, call, einmal.Fields(fields...))
		case words[1] == "update":
			kind.OnUpdate(id, call)
		case words[1] == "delete":
			kind.OnDelete(id, call)
		}
	}
}
