package virtual_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/uninstall"
	"github.com/einmal-operators/einmal/test/fixture"
)

// An operator whose Lease is in another namespace runs too, also while an expired Lease is in the state namespace.
func TestUninstallRefusesWhileTheOperatorRunsInAnyNamespace(t *testing.T) {
	virtually(t, fixture.NewLog(t), declareUndoing, func(t *testing.T, w *virtualWorld) {
		w.makeUndone(t)
		w.Pass(time.Minute)
		w.Stop()
		before := marksOf(t, w)
		w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
		w.create(t, leaseOf("default", "killed"))
		live := leaseOf("elsewhere", "live")
		w.create(t, live)
		stop := w.renewing(t, live)
		dry, err := w.tryUninstall(t, "--dry-run")
		if err != nil || !strings.Contains(dry, "Lease elsewhere/tests.einmal.dev: held by live; uninstall refuses while the operator is running\n") {
			t.Errorf("the dry run returns %v and says\n%s", err, dry)
		}
		said, err := w.tryUninstall(t)
		held, refused := errors.AsType[*uninstall.HeldError](err)
		if !refused || held.Holder != "live" || held.Lease.String() != "elsewhere/tests.einmal.dev" {
			t.Errorf("while the operator runs, uninstall returns %v and says\n%s", err, said)
		}
		if diff := cmp.Diff(before, marksOf(t, w)); diff != "" {
			t.Errorf("something was changed (-before +after):\n%s", diff)
		}
		stop()
		said, err = w.tryUninstall(t)
		if left := marksOf(t, w); err == nil || len(left) > 0 ||
			!strings.Contains(said, "Lease default/tests.einmal.dev: removed\n") ||
			!strings.Contains(said, "Lease elsewhere/tests.einmal.dev: failed: it is not in the state namespace; run uninstall again with --state-namespace elsewhere\n") {
			t.Errorf("after the operator was killed, uninstall returns %v, leaves %v and says\n%s", err, left, said)
		}
	})
}

// An operator in a manager of its own has no Lease: its marks are there again.
func TestUninstallNoticesAnOperatorWithoutALease(t *testing.T) {
	virtually(t, fixture.NewLog(t), declareUndoing, func(t *testing.T, w *virtualWorld) {
		w.makeUndone(t)
		w.Pass(15 * time.Minute) // The watermark has moved.
		said, err := w.tryUninstall(t)
		for _, want := range []string{
			"Widget default/kept: removed record,",
			"Widget default/kept: failed: the operator is still running and has written again: record, finalizer\n",
			"ConfigMap default/tests.einmal.dev: kept, because some objects were not cleaned up\n",
			"Secret default/tests.einmal.dev: kept, because some objects were not cleaned up\n",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("it does not say %q", want)
			}
		}
		if err == nil || t.Failed() {
			t.Errorf("uninstall returns %v and says\n%s", err, said)
		}
	})
}

// The operator's own objects stay if only some namespaces are stripped, and if they are in another namespace nothing is stripped.
func TestUninstallKeepsTheStateOfOthers(t *testing.T) {
	virtually(t, fixture.NewLog(t), declareUndoing, func(t *testing.T, w *virtualWorld) {
		w.makeUndone(t)
		w.Pass(15 * time.Minute) // The watermark has moved.
		w.Stop()
		before := marksOf(t, w)
		said, err := w.tryUninstall(t, "--namespace", "other-*")
		if err != nil || !strings.Contains(said, "ConfigMap default/tests.einmal.dev: kept, because it is also used for other namespaces\n") {
			t.Errorf("for other namespaces uninstall returns %v and says\n%s", err, said)
		}
		said, err = w.uninstallBy(t, einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.StateNamespace("elsewhere")))
		if err == nil || !strings.Contains(err.Error(), "are in namespace default; set --state-namespace default; nothing was changed") {
			t.Errorf("with a wrong state namespace uninstall returns %v and says\n%s", err, said)
		}
		if diff := cmp.Diff(before, marksOf(t, w)); diff != "" {
			t.Errorf("something was changed (-before +after):\n%s", diff)
		}
	})
}

// An account that may not list Leases in all namespaces looks into the state namespace and those that are named.
func TestUninstallLooksWhereTheAccountMay(t *testing.T) {
	virtually(t, fixture.NewLog(t), declareUndoing, func(t *testing.T, w *virtualWorld) {
		w.makeUndone(t)
		w.Pass(15 * time.Minute) // The watermark has moved.
		w.Stop()
		before := marksOf(t, w)
		w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}})
		live := leaseOf("elsewhere", "live")
		w.create(t, live)
		defer w.renewing(t, live)()
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Path != "/apis/coordination.k8s.io/v1/leases" {
				next.ServeHTTP(answer, r)
				return
			}
			answer.Header().Set("Content-Type", "application/json")
			answer.WriteHeader(http.StatusForbidden)
			refused := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, fixture.Identity, nil)
			if err := json.NewEncoder(answer).Encode(refused.Status()); err != nil {
				t.Error(err)
			}
		})
		const only = "Lease: only these namespaces were searched, since the account may not list all: default"
		said, err := w.tryUninstall(t, "--namespace", "elsewhere", "--namespace", "other-*")
		if _, refused := errors.AsType[*uninstall.HeldError](err); !refused || !strings.Contains(said, only+", elsewhere\n") {
			t.Errorf("with the namespace, uninstall returns %v and says\n%s", err, said)
		}
		if diff := cmp.Diff(before, marksOf(t, w)); diff != "" {
			t.Errorf("something was changed (-before +after):\n%s", diff)
		}
		if said = w.uninstall(t); !strings.Contains(said, only+"\n") {
			t.Errorf("without the namespace, it says\n%s", said)
		}
	})
}

// An operator that is started while its objects are stripped needs what it keeps for itself.
func TestUninstallKeepsTheStateOfAnOperatorThatWasStartedAgain(t *testing.T) {
	virtually(t, fixture.NewLog(t), declareUndoing, func(t *testing.T, w *virtualWorld) {
		w.makeUndone(t)
		w.Pass(15 * time.Minute) // The watermark has moved.
		w.Stop()
		lease := leaseOf("default", "")
		w.create(t, lease)
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/leases/") {
				started := "started"
				lease.Spec.HolderIdentity = &started
				if err := w.User.Update(r.Context(), lease); err != nil {
					t.Error(err)
				}
			}
			next.ServeHTTP(answer, r)
		})
		said, err := w.tryUninstall(t)
		for _, want := range []string{
			"Lease default/tests.einmal.dev: failed: it has changed, so the operator was started again; stop it, then run uninstall again: ",
			"ConfigMap default/tests.einmal.dev: kept, because the operator was started again\n",
			"Secret default/tests.einmal.dev: kept, because the operator was started again\n",
			"failed: 1\n",
		} {
			if err == nil || !strings.Contains(said, want) {
				t.Errorf("uninstall returns %v and does not say %q:\n%s", err, want, said)
			}
		}
	})
}

// leaseOf is the operator's Lease, which was last renewed an hour ago according to the holder's clock.
func leaseOf(namespace, holder string) *coordinationv1.Lease {
	seconds, renewed := int32(15), metav1.NewMicroTime(time.Now().Add(-time.Hour))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fixture.Identity},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
}

func (w *virtualWorld) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := w.User.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// renewing renews a Lease every two seconds until stop is called, as an operator that runs.
func (w *virtualWorld) renewing(t *testing.T, lease *coordinationv1.Lease) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ticker := time.NewTicker(2 * time.Second); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
			}
			renewed := metav1.NewMicroTime(lease.Spec.RenewTime.Add(2 * time.Second))
			lease.Spec.RenewTime = &renewed
			if err := w.User.Update(ctx, lease); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func (w *virtualWorld) tryUninstall(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	return w.uninstallBy(t, fixture.NewOperator(), args...)
}

func (w *virtualWorld) uninstallBy(t *testing.T, op *einmal.Operator, args ...string) (said string, err error) {
	t.Helper()
	declareUndoing(op)
	var out strings.Builder
	err = hook.Of().Uninstall(t.Context(), op, w.Server.Config(), &out, args...)
	return out.String(), err
}
