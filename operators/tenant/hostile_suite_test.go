package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

const (
	// hostileTenants is how many tenants attack at the same time, each with hostileSessions sessions.
	hostileTenants, hostileSessions = 6, 3
	// hostileBound is how long a leaked password may be accepted after the request to revoke it.
	hostileBound = 10 * time.Second
	// shippedLimit is the memory limit of the operator's Deployment, in KiB.
	shippedLimit = 128 << 10
)

// rounds is how many revocations are requested in all: EINMAL_HOSTILE_ROUNDS says it for a run by hand.
func hostileRounds(t *testing.T) int {
	t.Helper()
	given, is := os.LookupEnv("EINMAL_HOSTILE_ROUNDS")
	if !is {
		return 50
	}
	number, err := strconv.Atoi(given)
	if err != nil {
		t.Fatalf("EINMAL_HOSTILE_ROUNDS: %v", err)
	}
	return number
}

// Many tenants at the same time execute random statements that they have the rights for, in several sessions, while the revocation of their passwords is
// requested. Each leaked password is rejected in time, its sessions end, and the operator stays below its memory limit.
func TestHostileTenantsAreRevokedInTime(t *testing.T) {
	s := startStage(t)
	s.program = einmaltest.Build(t, ".")
	s.start(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	var all []*hostile
	for i := range hostileTenants {
		name := fmt.Sprintf("hostile-%d", i)
		s.Kubectl(t, s.manifest(name, ""), "apply", "-f", "-")
		all = append(all, &hostile{stage: s, name: name, attacker: attacker{
			chance: rand.New(rand.NewPCG(seed, uint64(i))), database: names.Tenant{Name: name}.Database(),
		}})
	}
	for i, one := range all {
		s.awaitPhase(t, one.name, v1.Ready)
		other := names.Tenant{Name: all[(i+1)%len(all)].name}
		one.attacker.others = []string{`"` + other.Owner() + `"`, `"` + other.App("web").Login(1) + `"`}
	}
	var left atomic.Int64
	left.Store(int64(hostileRounds(t)))
	var tenants sync.WaitGroup
	for _, one := range all {
		tenants.Go(func() {
			for n := 1; left.Add(-1) >= 0 && !t.Failed(); n++ {
				one.round(t, n)
			}
		})
	}
	tenants.Wait()
	executed, succeeded := int64(0), int64(0)
	for _, one := range all {
		executed, succeeded = executed+one.executed.Load(), succeeded+one.succeeded.Load()
	}
	if t.Logf("%d statements were executed, %d of them without an error", executed, succeeded); succeeded < 10*int64(hostileRounds(t)) {
		t.Error("the tenants did not attack")
	}
	logTimes(t, "the leaked password is rejected", all, func(h *hostile) []time.Duration { return h.rejected })
	logTimes(t, "its sessions have ended", all, func(h *hostile) []time.Duration { return h.ended })
	logTimes(t, "the app works again", all, func(h *hostile) []time.Duration { return h.works })
	if peak := operatorMemory(t, s.config); peak > shippedLimit {
		t.Errorf("the operator took %d KiB, limit %d", peak, shippedLimit)
	} else {
		t.Logf("the operator took %d KiB at most", peak)
	}
}

// logTimes logs the median and the longest of durations.
func logTimes(t *testing.T, what string, all []*hostile, of func(*hostile) []time.Duration) {
	t.Helper()
	var found []time.Duration
	for _, one := range all {
		found = append(found, of(one)...)
	}
	if slices.Sort(found); len(found) > 0 {
		t.Logf("%s, %d times: median %s, 9 of 10 within %s, longest %s", what, len(found), found[len(found)/2].Round(time.Millisecond),
			found[len(found)*9/10].Round(time.Millisecond), found[len(found)-1].Round(time.Millisecond))
	}
}

// operatorMemory returns the peak of the memory of the process that uses a kubeconfig, in KiB.
func operatorMemory(t *testing.T, kubeconfig string) int {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		line, err := os.ReadFile(process)
		if err != nil || !strings.Contains(string(line), kubeconfig) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(process), "status"))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		peak := 0
		if _, err := fmt.Sscan(after, &peak); err != nil {
			t.Fatal(err)
		}
		return peak
	}
	t.Fatal("the operator does not run")
	return 0
}

// hostile is a tenant that attacks.
type hostile struct {
	*stage

	attacker               attacker
	name                   string
	rejected, ended, works []time.Duration
	executed, succeeded    atomic.Int64
}

// round lets the tenant attack with its current password, requests its revocation, and measures it.
func (h *hostile) round(t *testing.T, n int) {
	h.heal(t)
	leaked, _ := h.credentials(t, h.name)
	ctx, stop := context.WithCancel(t.Context())
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer stop()
	for i := range hostileSessions {
		of := h.attacker
		of.chance = rand.New(rand.NewPCG(h.attacker.chance.Uint64(), uint64(i)))
		sessions.Go(func() { h.attack(ctx, &of, leaked) })
	}
	if known := sharedWays(); h.attacker.chance.IntN(2) == 0 {
		way := known[h.attacker.chance.IntN(len(known))]
		sessions.Go(func() { h.hinder(ctx, way, leaked) })
	}
	<-time.After(time.Second + time.Duration(h.attacker.chance.IntN(2000))*time.Millisecond)
	before := h.pids(t, leaked.Username)
	begun := time.Now()
	h.request(t, n)
	for h.acceptsAny(t, leaked) {
		if time.Since(begun) > hostileBound {
			t.Errorf("%s, round %d: the leaked password is accepted after %s; the status is %+v", h.name, n, time.Since(begun), h.conditions(t))
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	h.rejected = append(h.rejected, time.Since(begun))
	for h.survives(t, leaked.Username, before) {
		if time.Since(begun) > 3*hostileBound {
			var doing []string
			h.query(t, &doing, "SELECT array_agg(concat_ws(' ', pid, state, wait_event_type, wait_event, left(query, 100))) FROM pg_stat_activity WHERE usename = $1",
				leaked.Username)
			t.Errorf("%s, round %d: a session is left after %s: %q; the status is %+v", h.name, n, time.Since(begun), doing, h.conditions(t))
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	h.ended = append(h.ended, time.Since(begun))
	stop()
	sessions.Wait()
	for time.Since(begun) < time.Minute {
		if next, _ := h.credentials(t, h.name); next.Password != leaked.Password && h.accepts(t, next) {
			h.works = append(h.works, time.Since(begun))
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	if h.acceptsAny(t, leaked) {
		t.Errorf("%s, round %d: the leaked password is accepted again", h.name, n)
	}
}

// heal takes back what the tenant has done in the round before, as far as it keeps the app itself from logging in.
func (h *hostile) heal(t *testing.T) {
	login := names.Tenant{Name: h.name}.App("web").Login(1)
	var prepared []string // They can hold the locks that the statements below need.
	h.query(t, &prepared, "SELECT coalesce(array_agg(database || ' ' || quote_literal(gid)), '{}') FROM pg_prepared_xacts WHERE owner = $1", login)
	for _, one := range prepared {
		database, id, _ := strings.Cut(one, " ")
		_ = h.sqlIn(t, database, "ROLLBACK PREPARED "+id) // The operator can have done it.
	}
	h.sql(t, `ALTER ROLE "`+login+`" RESET ALL`)
	h.sql(t, `ALTER ROLE "`+login+`" IN DATABASE "`+h.attacker.database+`" RESET ALL`)
	h.sql(t, `ALTER DATABASE "`+h.attacker.database+`" RESET ALL`)
	einmaltest.Eventually(t, h.name+" works", func(context.Context) error {
		now, _ := h.credentials(t, h.name)
		return h.logIn(t, h.name, now)
	})
}

// attack logs in and executes random statements, again and again.
func (h *hostile) attack(ctx context.Context, of *attacker, leaked credential.Record) {
	for ctx.Err() == nil {
		database := h.attacker.database
		if of.chance.IntN(4) == 0 {
			database = "postgres"
		}
		password := leaked.Password.Reveal()
		if of.chance.IntN(2) == 0 {
			password = ownPassword
		}
		session, err := pgx.Connect(ctx, h.postgres.DSNOf(leaked.Username, password, database))
		if err != nil {
			<-time.After(20 * time.Millisecond)
			continue
		}
		if of.settings == nil {
			of.settings, _ = settings(ctx, session)
		}
		if len(of.settings) > 0 {
			h.execute(ctx, of, session)
		}
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = session.Close(closing)
		cancel()
	}
}

// sharedWays are the ways to hold up a revocation that are tried beside others.
func sharedWays() []way { return slices.DeleteFunc(ways(), func(one way) bool { return one.alone }) }

// hinder holds up the revocation in a known way, as far as the attacks in the other sessions let it, until ctx is done.
func (h *hostile) hinder(ctx context.Context, way way, leaked credential.Record) {
	replaced := strings.NewReplacer("LOGIN", leaked.Username, "OWNER", h.attacker.database)
	var sessions []*pgx.Conn
	for i, statements := range [][]string{way.first, {"SET ROLE NONE", way.second}} {
		database := h.attacker.database
		if i == 1 && strings.HasPrefix(way.second, "ALTER DATABASE") {
			database = "postgres"
		}
		session, err := pgx.Connect(ctx, h.postgres.DSNOf(leaked.Username, leaked.Password.Reveal(), database))
		if err != nil {
			break
		}
		sessions = append(sessions, session)
		for _, statement := range statements {
			_, err := session.Exec(ctx, replaced.Replace(statement))
			if h.executed.Add(1); err == nil {
				h.succeeded.Add(1)
			}
		}
	}
	<-ctx.Done()
	for _, session := range sessions {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = session.Close(closing)
		cancel()
	}
}

// execute executes random statements in a session. Each gets another time until the client gives up.
func (h *hostile) execute(ctx context.Context, of *attacker, session *pgx.Conn) {
	for range 1 + of.chance.IntN(40) {
		if ctx.Err() != nil || session.IsClosed() {
			return
		}
		statement, cancel := context.WithTimeout(ctx, time.Duration(1+of.chance.IntN(5000))*time.Millisecond)
		_, err := session.Exec(statement, of.statement())
		cancel()
		if h.executed.Add(1); err == nil {
			h.succeeded.Add(1)
		}
	}
}

// request requests a rotation in place.
func (h *hostile) request(t *testing.T, n int) {
	tenant := &v1.Tenant{}
	tenant.Name = h.name
	patch := fmt.Sprintf(`{"spec":{"credentials":{"rotation":{"requestId":"leak-%d","strategy":"InPlace","terminateSessions":true}}}}`, n)
	if err := h.Patch(t.Context(), tenant, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Error(err)
	}
}

func (h *hostile) conditions(t *testing.T) any {
	tenant := &v1.Tenant{}
	if err := h.Get(t.Context(), client.ObjectKey{Name: h.name}, tenant); err != nil {
		return err
	}
	return tenant.Status.Conditions
}

// accepts reports whether the server accepts a password. If it does not answer, or not because of the password, it may accept it.
func (h *hostile) accepts(t *testing.T, record credential.Record) bool {
	ctx, cancel := context.WithTimeout(t.Context(), loginWait)
	defer cancel()
	session, err := pgx.Connect(ctx, h.postgres.DSNOf(record.Username, record.Password.Reveal(), "postgres"))
	if err == nil {
		_ = session.Close(ctx)
		return true
	}
	answer, is := errors.AsType[*pgconn.PgError](err)
	return !is || answer.Code != "28P01" && answer.Code != "28000"
}

// acceptsAny reports whether the server accepts the leaked password or the one that attackers set.
func (h *hostile) acceptsAny(t *testing.T, leaked credential.Record) bool {
	return h.accepts(t, leaked) || h.accepts(t, credential.Record{Username: leaked.Username, Password: credential.NewPassword(ownPassword)})
}

// pids are the sessions of a login.
func (h *hostile) pids(t *testing.T, login string) (found []int) {
	h.query(t, &found, "SELECT coalesce(array_agg(pid), '{}') FROM pg_stat_activity WHERE usename = $1", login)
	return found
}

// survives reports whether one of the sessions is still there.
func (h *hostile) survives(t *testing.T, login string, before []int) bool {
	return slices.ContainsFunc(h.pids(t, login), func(pid int) bool { return slices.Contains(before, pid) })
}
