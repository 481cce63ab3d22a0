package einmal_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// testIdentity is the operator of these tests.
const testIdentity = "tests.einmal.dev"

// journal notes which handlers ran for which object.
type journal struct {
	mu    sync.Mutex
	calls []string
}

func (j *journal) add(object, call string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, object+": "+call)
}

// of lists the calls for one object, in order.
func (j *journal) of(object string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for _, call := range j.calls {
		if made, is := strings.CutPrefix(call, object+": "); is {
			found = append(found, made)
		}
	}
	return found
}

// plan is which handlers an operator of these tests has.
type plan struct {
	journal *journal
	// onDelete, onResume declare such handlers.
	onDelete, onResume bool
	// repeated notes calls that may be repetitions.
	repeated bool
	// fails makes the create handler fail so many times, by object.
	fails map[string]int
}

// declare declares handlers that note each call and set a phase in the status. The update handler looks at spec.size.
func declare[T any](kind *einmal.Kind[T], plan plan, name func(*T) string, setPhase func(*T, string)) {
	note := func(id string, c *einmal.Change[T]) {
		call := fmt.Sprintf("%s (%s, attempt %d)", id, c.Reason, c.Attempt)
		if plan.repeated && c.MaybeRepeated {
			call += " maybe repeated"
		}
		plan.journal.add(name(c.Object), call)
	}
	kind.OnCreate("make", func(_ context.Context, c *einmal.Change[T]) error {
		note("make", c)
		if c.Attempt <= plan.fails[name(c.Object)] {
			if !strings.HasPrefix(name(c.Object), "quietly") {
				setPhase(c.Object, fmt.Sprintf("failed %d times", c.Attempt))
			}
			return einmal.RetryAfter(10*time.Millisecond, fmt.Errorf("attempt %d is meant to fail", c.Attempt))
		}
		setPhase(c.Object, "made")
		return nil
	})
	kind.OnUpdate("resize", func(_ context.Context, c *einmal.Change[T]) error {
		note("resize", c)
		setPhase(c.Object, fmt.Sprintf("resized by %v", c.Diff))
		return nil
	}, einmal.Fields("spec.size"))
	if plan.onDelete {
		kind.OnDelete("unmake", func(_ context.Context, c *einmal.Change[T]) error {
			note("unmake", c)
			return nil
		})
	}
	if plan.onResume {
		kind.OnResume("greet", func(_ context.Context, c *einmal.Change[T]) error {
			note("greet", c)
			return nil
		})
	}
}

// world is a real control plane with the kinds of these tests, and an account for their operators.
type world struct {
	*cluster.Cluster
	account *rest.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOn(t, cluster.Start(t), string(testKinds()))
}

// sharedWorld is a control plane that other packages use too, with the kind Widget only. The tests that use it run one after the other.
func sharedWorld(t *testing.T) *world {
	t.Helper()
	widgets, _, _ := strings.Cut(string(testKinds()), "\n---\n")
	return worldOn(t, cluster.Shared(t), widgets)
}

func worldOn(t *testing.T, on *cluster.Cluster, definitions string) *world {
	t.Helper()
	w := &world{Cluster: on}
	w.Kubectl(t, definitions, "apply", "-f", "-")
	w.Kubectl(t, definitions, "wait", "--for=condition=Established", "-f", "-")
	w.account = w.Account(t, "operator", kindRules()...)
	return w
}

// kindRules are what an operator of the test kinds needs.
func kindRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{testGroup},
		Resources: []string{"widgets", "widgets/status", "gadgets", "gadgets/status"},
		Verbs:     []string{"get", "list", "watch", "patch"},
	}}
}

// operator runs an operator under its own account and returns what stops it. It is stopped at the end of the test in
// any case, and must stop without an error.
func (w *world) operator(t *testing.T, use carrier, plan plan) (stop func()) {
	t.Helper()
	op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.Logger(slog.New(slog.NewTextHandler(testLog(t), nil))))
	use.declare(op, plan)
	return w.run(t, op, w.account)
}

func (w *world) run(t *testing.T, op *einmal.Operator, account *rest.Config) (stop func()) {
	t.Helper()
	return runShown(t, op, account, einmal.RunOptions{SingleReplica: true})
}

// runShown runs an operator that shows how it is.
func runShown(t *testing.T, op *einmal.Operator, account *rest.Config, options einmal.RunOptions) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // It is stopped in order, before the test's own ends.
	ended := make(chan error, 1)
	go func() { ended <- op.Run(ctx, account, options) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the operator ended with %v", err)
			}
		case <-time.After(cluster.Patience):
			t.Error("the operator did not stop")
		}
	})
	t.Cleanup(stop)
	return stop
}

// manifest is an object of the carrier's kind, as a user writes it.
func (c carrier) manifest(name string, size int) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: %s, namespace: default}\nspec: {size: %d}\n",
		testGroup, c.kind, name, size)
}

// get reads an object of the carrier's kind.
func (w *world) get(ctx context.Context, use carrier, name string) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(testGroup + "/v1")
	found.SetKind(use.kind)
	err := w.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, found)
	return found, err
}

// record is the text of the object's record, "" for none.
func (c carrier) record(in *unstructured.Unstructured) string {
	if c.name == "status" {
		text, _, _ := unstructured.NestedString(in.Object, "status", "records", testIdentity)
		return text
	}
	return in.GetAnnotations()[testIdentity+"/record"]
}

// called waits until exactly these calls were made for the object and its record is written; then it makes sure that
// nothing more is written.
func (w *world) called(t *testing.T, use carrier, j *journal, name string, want ...string) {
	t.Helper()
	cluster.Eventually(t, "calls for "+name, func(ctx context.Context) error {
		if got := j.of(name); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		found, err := w.get(ctx, use, name)
		if err == nil && use.record(found) == "" {
			err = fmt.Errorf("%s has no record", name)
		}
		return err
	})
	w.quiet(t, use)
	if got := j.of(name); !slices.Equal(got, want) {
		t.Errorf("calls for %s: got %q, want %q", name, got, want)
	}
}

// quiet waits until nothing was written to the carrier's kind for half a second.
func (w *world) quiet(t *testing.T, use carrier) {
	t.Helper()
	unchanged(t, "writes of "+use.resource, func() int { return w.Writes(t, use.resource) })
}

// unchanged waits until a value stays the same for half a second.
func unchanged[T comparable](t *testing.T, what string, read func() T) {
	t.Helper()
	last, since := read(), time.Now()
	cluster.Until(t, what+" stay the same", func() bool {
		if now := read(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}
