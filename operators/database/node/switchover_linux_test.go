package node

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// The primary changes again and again while an app writes, and the operator is killed in half of the switchovers. At most one server accepts writes at any
// time, and all that the app knows to be written is there. EINMAL_SWITCHOVERS is the number of switchovers; the default is 10.
func TestNodeSwitchesOver(t *testing.T) {
	rounds := 10
	if text := os.Getenv("EINMAL_SWITCHOVERS"); text != "" {
		given, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("EINMAL_SWITCHOVERS is %q, want a number", text)
		}
		rounds = given
	}
	s := &started{realnode.Start(t, script, ready)}
	s.connect(t, "16")
	s.awaitServers(t, "Ready Streaming")
	s.switchesOver(t, rounds, func(round int) {
		if round%2 == 1 {
			s.killOperator(t, 2*time.Second)
		}
	})
}

// switchesOver changes the primary while an app writes. It calls disturb when each switchover has begun.
func (s *started) switchesOver(t *testing.T, rounds int, disturb func(round int)) {
	t.Helper()
	app, end := s.writes(t)
	for round := range rounds {
		primary := (round + 1) % 2
		s.change(t, "orders-db", fmt.Sprintf(`{"primary":%d}`, primary))
		disturb(round)
		s.awaitPrimary(t, primary)
		s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="PrimaryAsRequested")].reason`, "AsRequested")
		t.Logf("switchover %d: the app could not write for %s", round, app.pause())
	}
	if servers := end(); servers != rounds+1 {
		t.Errorf("%d servers have accepted writes, want %d", servers, rounds+1)
	}
}

// awaitPrimary waits until this server is the primary, and the other one a standby.
func (s *started) awaitPrimary(t *testing.T, primary int) {
	t.Helper()
	s.await(t, "database", "orders-db", ".status.primary.pod", fmt.Sprintf("orders-db-%d", primary))
	s.awaitServers(t, []string{"Ready Streaming", "Streaming Ready"}[primary])
}

// writes lets an app write, and asks each server whether it accepts writes. The function end ends both: it expects that nothing is lost and that the servers
// have accepted writes one after the other, and returns how many servers that are.
func (s *started) writes(t *testing.T) (app *writer, end func() int) {
	t.Helper()
	to := server{client: process(t, "PGHOST=orders-db-rw", "sleep", "infinity"), password: s.password(t)}
	asked := s.ask(t, to)
	to.address = s.MustKubectl(t, "get", "service", "--namespace", "production", "orders-db-rw", "--output", "jsonpath={.spec.clusterIP}")
	s.awaitSQL(t, "create table if not exists numbers (n int primary key)", "")
	app = &writer{at: to}
	stop := app.start(t)
	return app, func() int {
		stop()
		app.check(t)
		return asked.check(t)
	}
}

// password returns the password of the app.
func (s *started) password(t *testing.T) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(s.MustKubectl(t, "get", "secret", "--namespace", "production", "orders-db-app", "--output", "jsonpath={.data.password}"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// server is where an app connects to, from the Pod of a client.
type server struct{ client, address, password string }

// connect logs in.
func (s server) connect(ctx context.Context) (*pgx.Conn, error) {
	settings, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("prepare a connection: %w", err)
	}
	settings.Host, settings.Port, settings.Database, settings.User, settings.Password = s.address, 5432, "app", "app", s.password
	settings.ConnectTimeout = time.Second
	settings.DialFunc = func(ctx context.Context, _, address string) (net.Conn, error) {
		return realnode.DialAs(ctx, s.client, address)
	}
	return pgx.ConnectConfig(ctx, settings) //nolint:wrapcheck // It says what it has tried.
}

// writer is an app that writes numbers, one after the other, and connects again when it must.
type writer struct {
	at server

	mu sync.Mutex
	// last is when a number was written last, and longest the longest time between two numbers, without what pause has returned.
	last    time.Time
	longest time.Duration
	written []int
}

// start begins to write. It returns a function that ends it.
func (w *writer) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		var connection *pgx.Conn
		for n := 0; ctx.Err() == nil; n++ {
			if connection == nil || connection.IsClosed() {
				var err error
				if connection, err = w.at.connect(ctx); err != nil {
					sleep(ctx, 10*time.Millisecond)
					continue
				}
			}
			limited, done := context.WithTimeout(ctx, 2*time.Second)
			if _, err := connection.Exec(limited, "insert into numbers values ($1)", n); err == nil {
				w.wrote(n)
			}
			done()
			sleep(ctx, 5*time.Millisecond)
		}
		if connection != nil {
			_ = connection.Close(context.WithoutCancel(ctx))
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
}

func (w *writer) wrote(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if !w.last.IsZero() {
		w.longest = max(w.longest, now.Sub(w.last))
	}
	w.last = now
	w.written = append(w.written, n)
}

// pause returns the longest time for which the app could not write since the last call.
func (w *writer) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := w.longest
	w.longest = 0
	return longest.Round(time.Millisecond)
}

// check expects that all numbers are there.
func (w *writer) check(t *testing.T) {
	t.Helper()
	var connection *pgx.Conn
	einmaltest.Eventually(t, "the app connects", func(ctx context.Context) (err error) {
		connection, err = w.at.connect(ctx)
		return err
	})
	defer func() { _ = connection.Close(t.Context()) }()
	var lost int
	if err := connection.QueryRow(t.Context(), "select count(*) from unnest($1::int[]) n where n not in (select n from numbers)", w.written).Scan(&lost); err != nil {
		t.Fatal(err)
	}
	if lost > 0 || len(w.written) == 0 {
		t.Errorf("%d of %d numbers are lost", lost, len(w.written))
	}
	t.Logf("the app has written %d numbers", len(w.written))
}

// askers ask each server every 50 ms whether it accepts writes.
type askers struct {
	mu      sync.Mutex
	running sync.WaitGroup
	// periods say when each Pod has accepted writes.
	periods map[string]*period
}

// period is a time for which a server has surely accepted writes.
type period struct{ from, to time.Time }

// ask asks each server until the test ends.
func (s *started) ask(t *testing.T, to server) *askers {
	t.Helper()
	a := &askers{periods: map[string]*period{}}
	asked := map[string]bool{}
	s.EachLine(t, func(line string) {
		pod, address, _ := strings.Cut(line, " ")
		if address != "" && !asked[pod] {
			asked[pod] = true
			to.address = address
			at := to
			a.running.Go(func() { a.follow(t.Context(), pod, at) })
		}
	}, "get", "pods", "--namespace", "production", "--selector", "database.einmal.dev/name=orders-db", "--watch", "--output",
		`jsonpath={.metadata.uid} {.status.podIP}{"\n"}`)
	t.Cleanup(a.running.Wait)
	return a
}

// follow asks one server.
func (a *askers) follow(ctx context.Context, pod string, at server) {
	var connection *pgx.Conn
	for ; ctx.Err() == nil; sleep(ctx, 50*time.Millisecond) {
		if connection == nil || connection.IsClosed() {
			var err error
			if connection, err = at.connect(ctx); err != nil {
				continue
			}
		}
		begun := time.Now()
		limited, done := context.WithTimeout(ctx, time.Second)
		var standby bool
		err := connection.QueryRow(limited, "select pg_is_in_recovery()").Scan(&standby)
		done()
		if err == nil && !standby {
			a.accepts(pod, begun, time.Now())
		}
	}
	if connection != nil {
		_ = connection.Close(context.WithoutCancel(ctx))
	}
}

// accepts keeps that a server has accepted writes when it was asked at a time, and answered at another.
func (a *askers) accepts(pod string, asked, answered time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.periods[pod] == nil {
		a.periods[pod] = &period{from: answered}
	}
	a.periods[pod].to = asked
}

// check expects that the servers have accepted writes one after the other, and returns how many there are.
func (a *askers) check(t *testing.T) int {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []period
	for _, one := range a.periods {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b period) int { return a.from.Compare(b.from) })
	for i := 1; i < len(all); i++ {
		if all[i].from.Before(all[i-1].to) {
			t.Errorf("two servers accept writes at once, from %s to %s", all[i].from, all[i-1].to)
		}
	}
	return len(all)
}
