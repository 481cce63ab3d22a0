package witness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
	"github.com/einmal-operators/einmal/operators/tenant/witness"
)

// postgres is the server of all tests of the package: to make one takes a second.
var postgres *servers.Postgres //nolint:gochecknoglobals // TestMain has no other way to hand it on.

func TestMain(m *testing.M) {
	err := servers.WithPostgres(func(server *servers.Postgres) int {
		postgres = server
		return m.Run()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // This is the main of the tests.
	}
}

// tenancy is a tenant that the article's operator has made.
type tenancy struct {
	name     string
	operator article
	redis    *servers.Redis
}

func newTenancy(t *testing.T, name string) *tenancy {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), postgres.AdminDSN())
	must(t, err)
	made := &tenancy{name: name, redis: servers.StartRedis(t)}
	made.operator = article{connection, made.redis.Admin(), map[string]credential.Password{}}
	t.Cleanup(func() {
		_, err := connection.Exec(context.Background(), "DROP ROLE IF EXISTS "+pgx.Identifier{name}.Sanitize())
		must(t, errors.Join(err, connection.Close(context.Background()), made.operator.redis.Close()))
	})
	must(t, made.operator.onCreate(t.Context(), name))
	return made
}

// targets are the logins with what is stored now, as a pod has it that starts now.
func (y *tenancy) targets() []witness.Target {
	return []witness.Target{
		witness.Postgres{
			Address: postgres.Address(), Database: "postgres", Username: y.name, Password: y.password(databaseOf),
		},
		witness.Redis{Address: y.redis.Address(), Username: y.name, Password: y.password(cacheOf), Key: y.name + ":witness"},
	}
}

func (y *tenancy) password(of func(string) string) credential.Password {
	return y.operator.parameters[of(y.name)]
}

// until waits until a report is as it should be.
func until(t *testing.T, watching *witness.Witness, what string, is func(witness.Report) bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !is(watching.Report()) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come to %s:\n%s", what, watching.Report())
		}
		<-time.After(10 * time.Millisecond)
	}
}

// logins waits for some more logins everywhere.
func logins(t *testing.T, watching *witness.Witness) {
	t.Helper()
	before := watching.Report().Logins()
	until(t, watching, "five more logins", func(now witness.Report) bool { return now.Logins() >= before+5 })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
