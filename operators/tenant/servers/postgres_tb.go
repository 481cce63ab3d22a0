package servers

import (
	"context"
	"os"
	"testing"
	"time"
)

// StartPostgres starts a server for a test, with more settings if there are any ("name=value"). It ends, and its files are removed,
// with the test. The test fails if there is no PostgreSQL: tools/servers.sh finds or installs it.
func StartPostgres(tb testing.TB, settings ...string) *Postgres {
	tb.Helper()
	folder, err := os.MkdirTemp("", "postgres") //nolint:usetesting // Who has to run PostgreSQL for root cannot enter what tb.TempDir makes.
	if err != nil {
		tb.Fatal(err)
	}
	server := &Postgres{Dir: folder, Settings: settings}
	tb.Cleanup(func() {
		_ = server.Kill()
		_ = os.RemoveAll(folder)
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := server.Start(ctx); err != nil {
		tb.Fatal(err)
	}
	return server
}
