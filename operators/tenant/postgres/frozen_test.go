package postgres_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// A server that neither answers nor closes its connections causes an error soon, and later calls do not wait for it.
func TestAServerThatFallsSilentIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	app := newApp(t, "silent")
	app.converge(t)
	server, err := postgres.Open(postgres.Config{
		DSN: credential.NewPassword(shared.AdminDSN() + "&application_name=frozen"), PoolSize: 1, Timeout: 500 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	looks := []func(context.Context) error{
		server.Check,
		func(ctx context.Context) error {
			_, err := server.Tenant(names.Tenant{Name: "silent"}).Converge(ctx, app.mark)
			return err
		},
		func(ctx context.Context) error {
			_, err := server.Logins(app.names).Observe(ctx, app.mark, app.names.Login(1), credential.Password{})
			return err
		},
	}
	for i, look := range looks {
		answers := func() bool { return look(t.Context()) == nil } // On a busy machine, half a second can be too short.
		eventually(t, "a look succeeds", answers)
		freeze(t, "frozen")
		// A look gives up after half a second. One that does not still waits when the minute is over, also on a busy machine.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := look(ctx); err != nil && !errors.Is(err, postgres.ErrDown) { // What was idle for longer is pinged, and found dead.
			t.Errorf("look %d: %v", i, err)
		}
		if ctx.Err() != nil {
			t.Errorf("look %d waited for a server that is silent", i)
		}
		cancel()
		eventually(t, "the next look succeeds", answers)
	}
}

// freeze stops the processes of the server that sessions of an application have, and lets them go on when the test has ended. Only those
// that wait for their client: one that was stopped while it ends would keep a lock that new sessions need, and stop the whole server.
func freeze(t *testing.T, application string) {
	t.Helper()
	waiting := func() []int {
		return ask[[]int](t, `SELECT array_agg(pid) FROM pg_stat_activity
			WHERE application_name = $1 AND state = 'idle' AND wait_event = 'ClientRead'`, application)
	}
	pids := waiting()
	for deadline := time.Now().Add(time.Minute); len(pids) == 0; pids = waiting() {
		if time.Now().After(deadline) {
			t.Fatal("it has no sessions")
		}
		<-time.After(10 * time.Millisecond)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
}
