package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// thief has leaked credentials of the app web, holds sessions with them, and holds on to them as well as PostgreSQL allows.
type thief struct {
	*stage

	db, cache []credential.Record
	database  []*pgx.Conn
	redis     []*goredis.Conn
}

// takes logs in with what the app has now. The transaction that sets the password again holds the lock of the login's role.
func (f *thief) takes(t *testing.T) {
	t.Helper()
	db, cache := f.credentials(t, storyTenant)
	session, err := pgx.Connect(t.Context(), f.postgres.DSNOf(db.Username, db.Password.Reveal(), names.Tenant{Name: storyTenant}.Database()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	for _, statement := range []string{
		"ALTER DATABASE t_acme CONNECTION LIMIT 0", "SET ROLE NONE", "BEGIN", "ALTER ROLE CURRENT_USER PASSWORD 'the thief knows this'",
	} {
		if _, err := session.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	f.db, f.cache = append(f.db, db), append(f.cache, cache)
	f.database, f.redis = append(f.database, session), append(f.redis, f.session(t, cache))
}

// hasNothing is nil if both systems reject each password that the thief has, and have ended its sessions.
func (f *thief) hasNothing(ctx context.Context, t *testing.T) error {
	t.Helper()
	for i := range f.db {
		answer, is := errors.AsType[*pgconn.PgError](f.logIn(t, storyTenant, f.db[i]))
		switch {
		case !is || !strings.HasPrefix(answer.Code, "28"): // invalid_authorization_specification, invalid_password
			return errors.New("PostgreSQL accepts a leaked password")
		case f.authenticate(t, f.cache[i], "acme:thief") == nil:
			return errors.New("Redis accepts a leaked password")
		case f.database[i].Ping(ctx) == nil, f.redis[i].Ping(ctx).Err() == nil:
			return errors.New("a session with a leaked password is open")
		}
	}
	return nil
}

// A thief that holds leaked credentials, and sessions and locks with them, has nothing after "Revoke access" of docs/operators/tenant.md.
func TestALeakedCredentialIsRevoked(t *testing.T) {
	t.Parallel()
	s := &story{stage: startStage(t)}
	s.begin = func() *einmaltest.Program { return s.start(t) }
	s.running = s.begin()
	s.Kubectl(t, s.manifest(storyTenant, ""), "apply", "-f", "-")
	s.awaitPhase(t, storyTenant, v1.Ready)
	s.revokes(t)
	s.end(t)
	s.leaksNothing(t)
}

// revokes follows "Revoke access" of docs/operators/tenant.md, word by word: both credentials of an overlap have leaked.
func (s *story) revokes(t *testing.T) {
	t.Helper()
	const planned = ", credentials: {probeInterval: 10s, rotation: {requestId: summer}}"
	robber := &thief{stage: s.stage}
	robber.takes(t)
	s.Kubectl(t, s.manifest(storyTenant, planned), "apply", "-f", "-")
	s.await(t, storyTenant, "rotating", func(of *v1.Tenant) bool {
		return of.Status.Phase == v1.Rotating && of.Status.Apps[0].Database.Generation == 2 && of.Status.Apps[0].Cache.Generation == 2
	})
	robber.takes(t)

	// 1. If an overlap is in progress, end it: set overlap: 10s and keep the requestId.
	s.Kubectl(t, s.manifest(storyTenant, strings.Replace(planned, "summer", "summer, overlap: 10s", 1)), "apply", "-f", "-")
	s.awaitPhase(t, storyTenant, v1.Ready)
	// 2. Set a new requestId, with strategy: InPlace and terminateSessions.
	const revoked = ", credentials: {probeInterval: 10s, rotation: {requestId: leak, strategy: InPlace, terminateSessions: true}}"
	s.Kubectl(t, s.manifest(storyTenant, revoked), "apply", "-f", "-")
	einmaltest.Eventually(t, "what has leaked is revoked", func(ctx context.Context) error { return robber.hasNothing(ctx, t) })
	s.await(t, storyTenant, "ready", func(of *v1.Tenant) bool {
		return of.Status.Phase == v1.Ready && of.Status.Apps[0].Database.Generation == 3 && of.Status.Apps[0].Cache.Generation == 3
	})
	s.works(t, storyTenant)
	s.known = slices.Concat(s.passwords(t, 1), s.passwords(t, 2), s.passwords(t, 3))
}

// An app takes over the database of its tenant and holds the lock on it, which holds up the rights of all apps. It cannot hold up the revocation of its
// own password, which comes first.
func TestAnAppThatHoldsTheDatabaseIsRevoked(t *testing.T) {
	t.Parallel()
	s := &story{stage: startStage(t)}
	s.begin = func() *einmaltest.Program { return s.start(t) }
	s.running = s.begin()
	s.Kubectl(t, s.manifest(storyTenant, ""), "apply", "-f", "-")
	s.awaitPhase(t, storyTenant, v1.Ready)
	robber := &thief{stage: s.stage}
	robber.holdsDatabase(t)
	begun := time.Now()
	s.Kubectl(t, s.manifest(storyTenant, ", credentials: {rotation: {requestId: leak, strategy: InPlace, terminateSessions: true}}"), "apply", "-f", "-")
	einmaltest.Eventually(t, "what has leaked is revoked", func(ctx context.Context) error { return robber.hasNothing(ctx, t) })
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("the password was revoked after %s", took)
	}
	s.await(t, storyTenant, "ready", func(of *v1.Tenant) bool {
		return of.Status.Phase == v1.Ready && of.Status.Apps[0].Database.Generation == 2 && of.Status.Apps[0].Cache.Generation == 2
	})
	s.works(t, storyTenant)
	s.end(t)
}

// holdsDatabase makes the login of the app the owner of the database, and holds the lock on the database in an open transaction.
func (f *thief) holdsDatabase(t *testing.T) {
	t.Helper()
	db, cache := f.credentials(t, storyTenant)
	session, err := pgx.Connect(t.Context(), f.postgres.DSNOf(db.Username, db.Password.Reveal(), names.Tenant{Name: storyTenant}.Database()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	for _, statement := range []string{
		"SET ROLE NONE", "REASSIGN OWNED BY t_acme TO " + db.Username, "BEGIN", "ALTER DATABASE t_acme CONNECTION LIMIT 50",
	} {
		if _, err := session.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	f.db, f.cache = []credential.Record{db}, []credential.Record{cache}
	f.database, f.redis = []*pgx.Conn{session}, []*goredis.Conn{f.session(t, cache)}
}
