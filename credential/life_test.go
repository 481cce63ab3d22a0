package credential_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

func appOf(name string) *app {
	return &app{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// begun starts an operator in a simulated world, and returns the users whom its processes see.
func begun(w *einmaltest.World, declare func(*einmal.Operator, credential.System)) *credentialtest.Users {
	known := &credentialtest.Users{}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := einmal.New("apps.example.com", einmal.Permissions(&corev1.Secret{}, "get", "create", "update"))
		declare(op, credentialtest.Session{Users: known, Effect: p.IdempotentEffect})
		return op
	})
	return known
}

// Mission: whatever goes wrong, and whenever, a password that is in use is not replaced: neither by a crash, a lost status, a second
// replica nor an app that is deleted and made again.
func TestWhateverGoesWrongThePasswordIsTheFirst(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		known := begun(w, declareApps)
		w.Create(appOf("one"), appOf("two"))
		w.Advance(10 * time.Minute)
		w.Patch(appOf("one"), `{"spec":{"plan":"large"}}`)
		w.Advance(10 * time.Minute)
		w.Restart()
		w.Delete(appOf("two"))
		w.Advance(10 * time.Minute)
		w.Create(appOf("two"))
		w.Advance(10 * time.Minute)
		w.Stop()
		for _, name := range []string{"one", "two"} {
			stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-db"}}
			if had := known.Had(name); !w.Get(stored) || len(had) != 1 || had[0].Reveal() != string(stored.Data["password"]) {
				w.Errorf("%s has had %d passwords, and the last is not the stored one, or not the only one", name, len(had))
			}
		}
	}, einmaltest.Schedules(300))
}

// The same on a real control plane: the status is wiped, the app is replaced, deleted and created again, and the operator restarts.
// The Secret that was made first is never touched, outlives the app, and cannot be changed. One that was planted is not used.
func TestAPasswordIsMadeOnceOnARealControlPlane(t *testing.T) {
	real := cluster.Shared(t)
	namespace := real.Namespace(t, "credential-")
	known, log := &credentialtest.Users{}, &syncedLog{}
	operator := func() *einmal.Operator {
		op := einmal.New("apps.example.com", einmal.Permissions(&corev1.Secret{}, "get", "create", "update"),
			einmal.Logger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		declareApps(op, credentialtest.Session{Users: known})
		return op
	}
	installed(t, real, operator())
	account := real.Account(t, "apps",
		rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"apps", "apps/status"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "update"}})
	planted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "planted-db"},
		StringData: map[string]string{"username": "planted", "password": "planted-password"},
	}
	if err := real.Create(t.Context(), planted); err != nil {
		t.Fatal(err)
	}
	manifest := "{apiVersion: example.com/v1, kind: App, metadata: {name: one, namespace: " + namespace + "}}"
	stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one-db.g1"}}
	object := "object=" + namespace + "/one"
	handled := func(n int) {
		t.Helper()
		cluster.Until(t, "the app is handled", func() bool { return log.lines(object, "handler=user", "handler succeeded") >= n })
	}
	stop := runOperator(t, operator(), account)
	real.Kubectl(t, manifest, "apply", "-f", "-")
	real.Kubectl(t, strings.ReplaceAll(manifest, "one", "planted"), "apply", "-f", "-")
	cluster.Until(t, "a planted Secret is refused", func() bool { return strings.Contains(log.String(), "not marked as owned by this owner") })
	handled(1)
	if err := real.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	uid, version := stored.UID, stored.ResourceVersion
	for range 3 {
		real.Kubectl(t, `{"status": null}`, "patch", "app", "one", "-n", namespace, "--subresource=status", "--type=merge", "--patch-file=/dev/stdin")
		real.Kubectl(t, manifest, "replace", "-f", "-")
		stop()
		real.Kubectl(t, "", "delete", "app", "one", "-n", namespace)
		stop = runOperator(t, operator(), account)
		said := log.lines(object, "handler=user", "handler succeeded")
		real.Kubectl(t, manifest, "apply", "-f", "-")
		handled(said + 1)
	}
	stop()
	if err := real.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil || stored.UID != uid || stored.ResourceVersion != version {
		t.Errorf("the Secret was touched: %v, %v", stored.ObjectMeta, err)
	}
	if had := known.Had("one"); len(had) != 1 || had[0].Reveal() != string(stored.Data["password"]) || strings.Contains(log.String(), had[0].Reveal()) {
		t.Errorf("the user has had %d passwords, or another than the stored one, or the log shows it", len(had))
	}
	if had := known.Had("planted"); len(had) > 0 || strings.Contains(log.String(), "planted-password") {
		t.Error("the planted password was used")
	}
	if len(stored.OwnerReferences) > 0 {
		t.Error("the collector may delete the Secret")
	}
	stored.Data["password"] = []byte("another")
	if err := real.Update(t.Context(), stored); err == nil {
		t.Error("the Secret can be changed")
	}
	owner := credential.Owner{Operator: "apps.example.com", Namespace: namespace, Name: "one"}
	if err := (credential.Secrets{Client: real, Namespace: namespace}).Delete(t.Context(), "one-db", owner); err != nil {
		t.Error(err)
	}
}

// installed installs the definitions of an operator.
func installed(t *testing.T, real *cluster.Cluster, op *einmal.Operator) {
	t.Helper()
	for _, definition := range hook.Of().Observe(op, nil, slog.New(slog.DiscardHandler)).CRDs {
		real.Kubectl(t, string(definition), "apply", "-f", "-")
		real.Kubectl(t, string(definition), "wait", "--for=condition=Established", "-f", "-")
	}
}

// syncedLog collects a log.
type syncedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds a part.
func (l *syncedLog) Write(part []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(part)
}

// String is all of it.
func (l *syncedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// lines returns how many lines contain all of the parts.
func (l *syncedLog) lines(parts ...string) int {
	n := 0
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

// runOperator runs an operator until it is stopped.
func runOperator(t *testing.T, op *einmal.Operator, account *rest.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // It is stopped in order, before the test's own ends.
	ended := make(chan error, 1)
	go func() { ended <- op.Run(ctx, account, einmal.RunOptions{SingleReplica: true}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// makeAlways gives an app's user a new password whenever it is called, and stores it.
func makeAlways(ctx context.Context, of credential.Once, system credential.System) error {
	password, err := credential.Generate()
	if err != nil {
		return err
	}
	made := credential.Record{Username: of.Username, Password: password, Generation: 1}
	if err = system.Create(ctx, of.Owner, made); errors.Is(err, credential.ErrExists) {
		err = system.Set(ctx, of.Owner, credential.Assignment{Record: made})
	}
	if err != nil {
		return err
	}
	if err = of.Store.Create(ctx, of.Name, of.Owner, made); errors.Is(err, credential.ErrExists) {
		return nil
	}
	return err
}

// The negative control: a create handler that generates whenever it runs, as in the stories that this project comes from, is found.
func TestAHandlerThatGeneratesWheneverItRunsIsFound(t *testing.T) {
	finding := einmaltest.Search(t, func(w *einmaltest.World) {
		begun(w, func(op *einmal.Operator, system credential.System) {
			apps := einmal.For[app](op, einmal.GVK("example.com", "v1", "App"))
			apps.OnCreate("user", func(ctx context.Context, c *einmal.Change[app]) error { return makeAlways(ctx, userOf(c), system) })
		})
		w.Create(appOf("one"))
		w.Advance(10 * time.Minute)
	})
	if finding == nil || !strings.Contains(finding.String(), "give a password to one") {
		t.Errorf("it is not found, or something else is: %v", finding)
	}
}
