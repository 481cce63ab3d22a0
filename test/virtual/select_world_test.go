package virtual_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// selectingWorld is a virtual world whose operator says whether it is ready.
type selectingWorld struct {
	*virtualWorld

	t     *testing.T
	ready *atomic.Pointer[healthz.Checker]
	log   *fixture.Log
}

// showing catches the check of readiness that an operator adds to its manager.
type showing struct {
	*einmal.Operator
	ready *atomic.Pointer[healthz.Checker]
}

func (s showing) SetupWithManager(mgr manager.Manager) error {
	return s.Operator.SetupWithManager(catching{Manager: mgr, ready: s.ready})
}

type catching struct {
	manager.Manager
	ready *atomic.Pointer[healthz.Checker]
}

func (c catching) AddReadyzCheck(_ string, check healthz.Checker) error {
	c.ready.Store(&check)
	return nil
}

// selecting runs an operator in virtual time, and lets use act there.
func selecting(t *testing.T, declare func(*einmal.Operator), use func(*selectingWorld), faults ...simulation.Fault) {
	t.Helper()
	log, ready := fixture.NewLog(t), new(atomic.Pointer[healthz.Checker])
	inVirtualTime(t, slog.NewTextHandler(log, nil), func() simulation.Operator {
		op := fixture.NewOperator()
		declare(op)
		return showing{Operator: op, ready: ready}
	}, func(t *testing.T, w *virtualWorld) {
		use(&selectingWorld{virtualWorld: w, t: t, ready: ready, log: log})
	}, faults...)
}

// is expects the operator to be ready, for "", or to say why it is not.
func (w *selectingWorld) is(want string) {
	w.t.Helper()
	got := ""
	if err := (*w.ready.Load())(nil); err != nil {
		got = err.Error()
	}
	if !strings.Contains(got, want) || want == "" && got != "" {
		w.t.Errorf("readiness says %q, want %q", got, want)
	}
}

func (w *selectingWorld) create(objects ...*unstructured.Unstructured) {
	w.t.Helper()
	for _, object := range objects {
		if err := w.User.Create(w.t.Context(), object); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *selectingWorld) delete(objects ...*unstructured.Unstructured) {
	w.t.Helper()
	for _, object := range objects {
		if err := w.User.Delete(w.t.Context(), object); err != nil {
			w.t.Fatal(err)
		}
	}
}

// change replaces an object by what it is made to be.
func (w *selectingWorld) change(object *unstructured.Unstructured, to func(*unstructured.Unstructured)) {
	w.t.Helper()
	found := object.DeepCopy()
	err := w.User.Get(w.t.Context(), client.ObjectKeyFromObject(object), found)
	if err == nil {
		to(found)
		err = w.User.Update(w.t.Context(), found)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// calls are those since the last time.
func (w *selectingWorld) calls(since *int) []string {
	var made []string
	all := w.Calls()
	for _, call := range all[*since:] {
		made = append(made, fmt.Sprintf("%s of %s %s (%s)", call.Handler, call.Kind.GroupVersion(), call.Object.Name, call.Reason))
	}
	*since = len(all)
	slices.Sort(made)
	return made
}

func (w *selectingWorld) called(since *int, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.calls(since)); diff != "" {
		w.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func (w *selectingWorld) includes(made []string, wanted ...string) {
	w.t.Helper()
	for _, want := range wanted {
		if !slices.Contains(made, want) {
			w.t.Errorf("not called: %s, but %q", want, made)
		}
	}
}

func (w *selectingWorld) says(attribute string, times int) {
	w.t.Helper()
	if n := w.log.Count(attribute); n != times {
		w.t.Errorf("the log says %d times %q, want %d", n, attribute, times)
	}
}
