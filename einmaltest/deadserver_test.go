package einmaltest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// How long the API server is dead and frozen, and how soon after its return the operator serves as before: client-go doubles its
// pause between attempts to watch up to half a minute, and adds as much again by chance.
const (
	deadFor    = 2 * time.Minute
	frozenFor  = 20 * time.Second
	fullWithin = 90 * time.Second
	tickEvery  = 10 * time.Second
)

const survivor = "survivor.einmal.dev"

// tally counts what handlers did, by name.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	log    strings.Builder
}

func (c *tally) add(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what]++
	return c.counts[what]
}

func (c *tally) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[what]
}

// without are the counts of all but what is done again and again.
func (c *tally) without(what string) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := maps.Clone(c.counts)
	delete(kept, what)
	return kept
}

// Write keeps what the operator logs.
func (c *tally) Write(part []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(part)
}

func (c *tally) logged() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.String()
}

// operator declares handlers of each sort that an outage could hurt. The daemon writes when it is asked to.
func (c *tally) operator(asked <-chan struct{}) *einmal.Operator {
	op := einmal.New(survivor, einmal.StateNamespace("default"), einmal.Logger(slog.New(slog.NewTextHandler(c, nil))))
	configs := einmal.For[corev1.ConfigMap](op)
	ours := einmal.Labels("survivor", einmal.Present())
	configs.OnCreate("make", func(_ context.Context, o *einmal.Change[corev1.ConfigMap]) error {
		c.add("make " + o.Object.Name)
		if wait, err := time.ParseDuration(o.Object.Data["retry"]); err == nil && o.Attempt == 1 {
			return einmal.RetryAfter(wait, errors.New("the first attempt is meant to fail"))
		}
		return nil
	}, ours)
	configs.OnUpdate("resize", func(_ context.Context, o *einmal.Change[corev1.ConfigMap]) error {
		c.add("resize " + o.Object.Name + " to " + o.Object.Data["size"])
		return nil
	}, ours, einmal.Fields("data.size"))
	watched := einmal.When(func(o *corev1.ConfigMap) bool { return o.Name == "watched" })
	configs.Timer("tick", tickEvery, func(context.Context, *einmal.Change[corev1.ConfigMap]) error {
		c.add("tick")
		return nil
	}, watched)
	configs.Daemon("guard", func(ctx context.Context, o *einmal.Change[corev1.ConfigMap]) error {
		started := c.add("guard starts")
		for {
			select {
			case <-ctx.Done():
				c.add("guard ends")
				return nil
			case <-asked:
				o.Object.Annotations = map[string]string{"guard": fmt.Sprintf("the guard that started %d. is here", started)}
				if err := o.Sync(ctx); err != nil {
					c.add("guard cannot write: " + err.Error())
				}
			}
		}
	}, watched, einmal.WithoutFinalizer())
	return op
}

// Scenarios 88 and 89 of docs/concepts/scenarios.md: the API server is killed, is dead for two minutes, and comes back on
// its port with its data. The operator serves again without a restart; what was to be tried again is, once; daemons and
// timers do not notice. One that is elected ends, as it has to. Then the API server only hangs, for a while.
func TestAnOperatorOutlivesItsAPIServer(t *testing.T) {
	t.Parallel()
	s := newSurvivor(t)
	s.create(t, "watched", "")
	s.create(t, "soon", "1m")                             // It falls due while the API server is dead.
	s.create(t, "late", (deadFor + time.Minute).String()) // It falls due afterwards, or nearly.
	s.until(t, "all begins", func() bool {
		return s.of("make watched")+s.of("make soon")+s.of("make late")+s.of("guard starts") == 4 && s.of("tick") > 0
	})
	s.answers(t, s.health+"/readyz", http.StatusOK, "ok")
	s.answers(t, s.metrics+"/metrics", http.StatusOK, watching(1))
	restart := s.KillServer(t)
	died := time.Now()
	if err := <-s.elected; err == nil || !strings.Contains(err.Error(), "Lease") {
		t.Errorf("the operator that is elected ended with %v", err)
	}
	t.Logf("the operator that is elected has ended %s after the API server", time.Since(died).Round(time.Second))
	s.answers(t, s.health+"/readyz", http.StatusInternalServerError, "")
	s.answers(t, s.metrics+"/metrics", http.StatusOK, watching(0))
	ticked := s.of("tick")
	<-time.After(time.Until(died.Add(deadFor)))
	if more := s.of("tick") - ticked; more < int(deadFor/tickEvery)/2 {
		t.Errorf("the timer ticked %d times while the API server was dead", more)
	}
	restart()
	s.serves(t, "dead", "2")
	s.SignalServer(t, syscall.SIGSTOP)
	<-time.After(frozenFor)
	s.SignalServer(t, syscall.SIGCONT)
	s.serves(t, "frozen", "3")
	s.nothingTwice(t)
}

// survivorWorld is a control plane with an operator that is not elected, and another one that is.
type survivorWorld struct {
	*cluster.Cluster
	tally

	sync            chan struct{}
	health, metrics string
	stop            func()
	account         *rest.Config
	// elected yields how the other one ends.
	elected <-chan error
}

func newSurvivor(t *testing.T) *survivorWorld {
	t.Helper()
	s := &survivorWorld{Cluster: cluster.Start(t), sync: make(chan struct{}), health: "http://" + cluster.FreeAddress(t), metrics: "http://" + cluster.FreeAddress(t)}
	account := s.Account(t, "survivor",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "patch", "create"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}})
	s.account = account
	_, s.stop = runOperator(t, s.operator(s.sync), account, einmal.RunOptions{
		SingleReplica: true, HealthAddress: strings.TrimPrefix(s.health, "http://"), MetricsAddress: strings.TrimPrefix(s.metrics, "http://"),
	})
	other := einmal.New("elected.einmal.dev", einmal.StateNamespace("default"), einmal.Logger(slog.New(slog.DiscardHandler)))
	einmal.For[corev1.ConfigMap](other).OnCreate("none", func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil },
		einmal.Labels("survivor", einmal.Equals("none")))
	s.elected, _ = runOperator(t, other, account, einmal.RunOptions{})
	cluster.Eventually(t, "the other operator is elected", func(ctx context.Context) error {
		lease, err := s.lease(ctx)
		if err == nil && lease == "" {
			err = errors.New("no process holds the lease")
		}
		return err
	})
	return s
}

// runOperator runs an operator until the test ends, at the latest, or it is stopped; then it must not have failed.
func runOperator(t *testing.T, op *einmal.Operator, account *rest.Config, options einmal.RunOptions) (ended <-chan error, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // It is stopped in order, before the test's own ends.
	end, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		end <- op.Run(ctx, account, options)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return end, func() {
		cancel()
		if err := <-end; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	}
}

func watching(healthy int) string {
	return fmt.Sprintf(`einmal_watch_healthy{namespace="",operator="%s",resource="configmaps"} %d`, survivor, healthy)
}

func (s *survivorWorld) lease(ctx context.Context) (string, error) {
	found := &coordinationv1.Lease{}
	err := s.Get(ctx, types.NamespacedName{Namespace: "default", Name: "elected.einmal.dev"}, found)
	if err != nil || found.Spec.HolderIdentity == nil {
		return "", err
	}
	return *found.Spec.HolderIdentity, nil
}

func (s *survivorWorld) create(t *testing.T, name, retry string) {
	t.Helper()
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"survivor": "yes"}},
		Data:       map[string]string{"size": "1", "retry": retry},
	}
	if err := s.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
}

// until waits until a condition holds, for as long as the operator may take.
func (s *survivorWorld) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, ticker := time.After(fullWithin), time.NewTicker(50*time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within %s: %s; so far %v\nthe log:\n%s", fullWithin, what, s.without(""), s.logged())
		}
	}
}

// answers waits until an address answers with a code, and with words in its text.
func (s *survivorWorld) answers(t *testing.T, address string, code int, words string) {
	t.Helper()
	s.until(t, fmt.Sprintf("%s answers %d %s", address, code, words), func() bool {
		got, text, err := cluster.Fetch(t.Context(), address)
		return err == nil && got == code && strings.Contains(text, words)
	})
}

// serves edits an object and makes another one, when the API server is back, and waits until all is as before.
func (s *survivorWorld) serves(t *testing.T, after, size string) {
	t.Helper()
	back, ticked := time.Now(), s.of("tick")
	merge := client.RawPatch(types.MergePatchType, []byte(`{"data":{"size":"`+size+`"}}`))
	edited := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "watched"}}
	cluster.Eventually(t, "an edit", func(ctx context.Context) error { return s.Patch(ctx, edited, merge) })
	s.create(t, "after-it-was-"+after, "")
	s.until(t, "the edit is handled", func() bool { return s.of("resize watched to "+size) == 1 })
	t.Logf("after it was %s: the edit is handled %s after the return", after, time.Since(back).Round(time.Millisecond))
	s.until(t, "the new object is handled", func() bool { return s.of("make after-it-was-"+after) == 1 })
	s.answers(t, s.health+"/readyz", http.StatusOK, "ok")
	s.answers(t, s.metrics+"/metrics", http.StatusOK, watching(1))
	t.Logf("after it was %s: ready %s after the return", after, time.Since(back).Round(time.Millisecond))
	s.sync <- struct{}{}
	s.until(t, "the daemon writes", func() bool {
		err := s.Get(t.Context(), client.ObjectKeyFromObject(edited), edited)
		return err == nil && strings.HasPrefix(edited.Annotations["guard"], "the guard that started 1.")
	})
	s.until(t, "the timer ticks", func() bool { return s.of("tick") > ticked })
}

// nothingTwice expects that everything was done once, and that another process finds it so.
func (s *survivorWorld) nothingTwice(t *testing.T) {
	t.Helper()
	want := map[string]int{
		"make watched": 1, "make soon": 2, "make late": 2, "guard starts": 1, "resize watched to 2": 1, "resize watched to 3": 1,
		"make after-it-was-dead": 1, "make after-it-was-frozen": 1,
	}
	s.until(t, "what was to be tried again is", func() bool { return s.of("make soon") == 2 && s.of("make late") == 2 })
	if got := s.without("tick"); !maps.Equal(got, want) {
		t.Errorf("done: %v, want %v", got, want)
	}
	s.answers(t, s.metrics+"/metrics", http.StatusOK, fmt.Sprintf(`einmal_records_lost_total{kind="ConfigMap",operator="%s"} 0`, survivor))
	s.stop()
	want["guard ends"] = 1
	if got := s.without("tick"); !maps.Equal(got, want) {
		t.Errorf("done when it has stopped: %v, want %v", got, want)
	}
	next := &tally{}
	_, stop := runOperator(t, next.operator(nil), s.account, einmal.RunOptions{SingleReplica: true})
	s.until(t, "another process has looked at all objects", func() bool { return strings.Contains(next.logged(), "watching, ") })
	stop()
	if got := slices.Sorted(maps.Keys(next.without("tick"))); !slices.Equal(got, []string{"guard ends", "guard starts"}) {
		t.Errorf("another process has done %q", got)
	}
}
