package cluster_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// The limits of these tests. With the defaults they would take minutes.
const (
	hangTimeout = 2 * time.Second
	hangSilence = 3 * time.Second
	hangGrace   = time.Second
	// noticedWithin leaves room for backoff, and for a slow machine.
	noticedWithin = 20 * time.Second
)

// TestRequestsThatHangOnARealControlPlane shows that an operator recovers if its connections accept bytes and never answer. It uses
// HTTP/1.1, which has no health check of its own.
func TestRequestsThatHangOnARealControlPlane(t *testing.T) {
	w := newWorld(t)
	rules := append(kindRules(), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}})
	h := &hangWorld{world: w, account: w.Account(t, "hanging", rules...)}
	t.Run("a request of a handler", h.request)
	t.Run("a watch", h.watch)
	t.Run("everything, while the operator stops", h.stop)
}

type hangWorld struct {
	world   *world
	account *rest.Config
}

// through returns a valve in front of the API server, and the configuration of an operator behind it.
func (h *hangWorld) through(t *testing.T) (*valve, *rest.Config) {
	t.Helper()
	between := newValve(t, strings.TrimPrefix(h.account.Host, "https://"))
	account := rest.CopyConfig(h.account)
	account.Host, account.NextProtos = "https://"+between.listener.Addr().String(), []string{"http/1.1"}
	return between, account
}

func (h *hangWorld) operator(t *testing.T, more ...einmal.OperatorOption) *einmal.Operator {
	t.Helper()
	options := []einmal.OperatorOption{
		einmal.Scheme(fixture.AddKinds), einmal.RequestTimeout(hangTimeout), einmal.ShutdownTimeout(hangGrace),
		einmal.Logger(slog.New(slog.NewTextHandler(fixture.NewLog(t), nil))),
	}
	op := einmal.New(fixture.Identity, append(options, more...)...)
	hook.Of().SetWatchSilence(op, hangSilence)
	return op
}

// request makes a request of a handler hang. The attempt fails at the deadline, and the next one succeeds.
func (h *hangWorld) request(t *testing.T) {
	between, account := h.through(t)
	op, j, use := h.operator(t), &fixture.Journal{}, fixture.StatusCarrier()
	shut := sync.OnceFunc(between.shut)
	failed := make(chan error, 10)
	var took time.Duration
	einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		if err := created(ctx, c.Client, "first"); err != nil {
			return err
		}
		shut() // The connection of this request is in the pool.
		asked := time.Now()
		if err := created(ctx, c.Client, c.Object.Name); err != nil {
			if len(failed) == 0 {
				took = time.Since(asked)
			}
			failed <- err
			return err
		}
		j.Add(c.Object.Name, "made")
		return nil
	})
	stop := h.world.run(t, op, account)
	h.world.create(t, use, "asked")
	err := yielded(t, "the request fails", failed)
	between.open()
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(),
		"create configmaps in namespace default: the API server did not answer within 2s; the request may have been carried out") {
		t.Errorf("the error is %v", err)
	}
	if took > hangTimeout+time.Second {
		t.Errorf("it took %s", took)
	}
	began := time.Now()
	h.world.called(t, use, j, "asked", "made")
	t.Logf("the request failed after %s; all was done %s after connections worked again", took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	stop()
	h.world.delete(t, use, "asked")
}

// created makes a ConfigMap, unless an earlier attempt has.
func created(ctx context.Context, to client.Client, name string) error {
	return client.IgnoreAlreadyExists(to.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}))
}

func yielded(t *testing.T, what string, yields <-chan error) error {
	t.Helper()
	select {
	case err := <-yields:
		return err
	case <-time.After(noticedWithin):
		t.Fatalf("%s: not within %s", what, noticedWithin)
		return nil
	}
}

// watch silences all connections. The operator sees later changes only after it opens its watches again.
func (h *hangWorld) watch(t *testing.T) {
	between, account := h.through(t)
	op, j, use := h.operator(t), &fixture.Journal{}, fixture.StatusCarrier()
	use.Declare(op, fixture.Plan{Journal: j})
	stop := h.world.run(t, op, account)
	h.world.create(t, use, "before")
	h.world.called(t, use, j, "before", "make (create, attempt 1)")
	between.close()
	h.world.create(t, use, "unseen")
	h.world.edit(t, use, "before", "size", int64(2))
	silent := time.Now()
	cluster.Until(t, "the operator handles the object that it has not seen", func() bool { return len(j.Of("unseen")) > 0 })
	if took := time.Since(silent); took > noticedWithin {
		t.Errorf("it took %s", took)
	} else {
		t.Logf("it was handled after %s", took.Round(time.Millisecond))
	}
	h.world.called(t, use, j, "unseen", "make (create, attempt 1)")
	h.world.called(t, use, j, "before", "make (create, attempt 1)", "resize (update, attempt 1)")
	stop()
	h.world.delete(t, use, "before")
	h.world.delete(t, use, "unseen")
}

// stop stops the operator while a request of a handler hangs, and everything else does too.
func (h *hangWorld) stop(t *testing.T) {
	between, account := h.through(t)
	op, use, asking := h.operator(t, einmal.RequestTimeout(time.Minute)), fixture.StatusCarrier(), make(chan error, 10)
	einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		between.shut()
		asking <- nil
		return created(ctx, c.Client, c.Object.Name)
	})
	stop := h.world.run(t, op, account)
	h.world.create(t, use, "hangs")
	_ = yielded(t, "the handler is called", asking)
	asked := between.connections()
	cluster.Until(t, "the watch is asked for again, and hangs too", func() bool { return between.connections() > asked })
	began := time.Now()
	stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the operator took %s to stop", took)
	} else {
		t.Logf("it stopped after %s", took.Round(time.Millisecond))
	}
	between.open()
	h.world.delete(t, use, "hangs")
}
