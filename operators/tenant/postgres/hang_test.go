package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// hangs makes connections to the app's database hang.
func (a app) hangs(t *testing.T, record credential.Record) {
	t.Helper()
	obstacles()["locked-catalog"](t, a, record, connect(t, a.tenant.Database, record))
}

// Databases that hang take connections from no other tenant: after the first attempt, each has its own backoff, and all share one place.
func TestDatabasesThatHangTakeNoConnectionsFromOthers(t *testing.T) {
	t.Parallel()
	const hanging = 5 // More than there are places.
	healthy, record := madeApp(t, "healthy")
	var apps []app
	var records []credential.Record
	for i := range hanging {
		app, leaked := madeApp(t, "hanging-"+string(rune('a'+i)))
		app.hangs(t, leaked)
		app.logins.Tenant.Server, app.tenant.Server = healthy.server, healthy.server // One operator has one Server.
		apps, records = append(apps, app), append(records, leaked)
	}
	tryAll := func() (longest time.Duration) {
		var all sync.WaitGroup
		begun := time.Now()
		for i, app := range apps {
			all.Go(func() {
				_, err := app.logins.Observe(t.Context(), app.mark, records[i].Username, records[i].Password)
				if !errors.Is(err, postgres.ErrHangs) {
					t.Errorf("a database that hangs: %v", err)
				}
			})
		}
		all.Wait()
		return time.Since(begun)
	}
	t.Logf("the first attempts took %s", tryAll())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 2 {
			tryAll()
			<-time.After(time.Second)
		}
	}()
	for tries := 0; ; tries++ {
		begun := time.Now()
		healthy.expect(t, "beside databases that hang", map[credential.Record]credential.State{record: credential.Accepted})
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("the login of another tenant took %s", took)
		}
		select {
		case <-ended:
			t.Logf("%d logins of another tenant", tries)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Another tenant gives the victim a right on something of its own, and makes its database hang. The deletion ends what makes it hang.
func TestAnotherTenantWhoseDatabaseHangsHoldsUpNoDeletion(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "victim-hang")
	neighbour, other := madeApp(t, "neighbour-hang")
	execute(t, connect(t, neighbour.tenant.Database, other), "CREATE TABLE bait ()", "GRANT SELECT ON bait TO "+`"`+record.Username+`"`)
	neighbour.hangs(t, other)
	app.isDeleted(t, record.Username)
}

// A prepared transaction holds the lock of a login, in a database to which another app makes all connections hang. Both hold up no revocation.
func TestAPreparedTransactionInADatabaseThatHangsHoldsUpNoRevocation(t *testing.T) {
	t.Parallel()
	app, leaked := madeApp(t, "prepared-hang")
	execute(t, connect(t, app.tenant.Database, leaked), "SET ROLE NONE", "BEGIN", "ALTER ROLE CURRENT_USER PASSWORD '"+leaked.Password.Reveal()+"'",
		"PREPARE TRANSACTION 'in a database that hangs'")
	second := app
	second.names.Name, second.mark.Name = "second", app.mark.Name+"/second"
	second.logins = app.server.Logins(second.names)
	helper := second.record(t, 1)
	if err := second.logins.Create(t.Context(), second.mark, helper); err != nil {
		t.Fatal(err)
	}
	second.hangs(t, helper)
	next := app.record(t, 2)
	next.Username = leaked.Username
	app.logins.Terminate = true
	ctx, cancel := context.WithTimeout(t.Context(), revokedWithin)
	defer cancel()
	begun := time.Now()
	if err := app.logins.Set(ctx, app.mark, credential.Assignment{Record: next}); err != nil {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
	app.expect(t, "after the revocation", map[credential.Record]credential.State{leaked: credential.Refused, next: credential.Accepted})
}

// A database hung a moment ago, and a prepared transaction in it holds the lock of a table on which the victim has a right. The deletion needs two
// connections to that database: one that waits for the lock, and one that rolls the transaction back.
func TestAPreparedTransactionInADatabaseThatHungHoldsUpNoDeletion(t *testing.T) {
	t.Parallel()
	app, record := madeApp(t, "victim-hung")
	neighbour, other := madeApp(t, "neighbour-hung")
	session := connect(t, neighbour.tenant.Database, other)
	execute(t, session, "CREATE TABLE bait ()", `GRANT SELECT ON bait TO "`+record.Username+`"`)
	neighbour.hangs(t, other)
	neighbour.logins.Tenant.Server = app.server // One operator has one Server.
	if _, err := neighbour.logins.Observe(t.Context(), neighbour.mark, other.Username, other.Password); !errors.Is(err, postgres.ErrHangs) {
		t.Fatalf("a database that hangs: %v", err)
	}
	super(t, "postgres", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '`+other.Username+`'`)
	execute(t, connect(t, neighbour.tenant.Database, other), "BEGIN", "ALTER TABLE bait ADD COLUMN more int", "PREPARE TRANSACTION 'hung'")
	app.isDeleted(t, record.Username)
}
