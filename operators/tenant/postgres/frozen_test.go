package postgres_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// tenant-and-database.md §2, Reconcile 2: who does not answer, and does not hang up either, is told of soon; and is not waited for again.
func TestAServerThatFallsSilentIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	app := newApp(t, "silent")
	app.converge(t)
	server, err := postgres.Open(postgres.Config{
		DSN: credential.NewPassword(shared.AdminDSN()), Application: "frozen", PoolSize: 1, Timeout: 500 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	looks := []func() error{
		func() error { return server.Check(t.Context()) },
		func() error {
			_, err := server.Tenant(names.Tenant{Name: "silent"}).Converge(t.Context(), app.mark)
			return err
		},
		func() error {
			_, err := server.Logins(app.names).Observe(t.Context(), app.mark, app.names.Login(1), credential.Password{})
			return err
		},
	}
	for i, look := range looks {
		if err := look(); err != nil {
			t.Fatal(err)
		}
		freeze(t, "frozen")
		begun := time.Now()
		if err := look(); err != nil && !errors.Is(err, postgres.ErrDown) { // What was idle for longer is pinged, and found dead.
			t.Errorf("look %d: %v", i, err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("look %d took %s", i, took)
		}
		if err := look(); err != nil {
			t.Errorf("look %d, the next time: %v", i, err)
		}
	}
}

// freeze stops the processes of the server that sessions of an application have, and lets them go on when the test has ended.
func freeze(t *testing.T, application string) {
	t.Helper()
	pids := ask[[]int](t, "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = $1 AND state = 'idle'", application)
	if len(pids) == 0 {
		t.Fatal("it has no sessions")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
}
