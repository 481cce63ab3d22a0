package servers

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// StartPostgres starts a server for a test, with more settings if there are any ("name=value"). It ends, and its files are removed,
// with the test. The test fails if there is no PostgreSQL: tools/servers.sh finds or installs it.
func StartPostgres(tb testing.TB, settings ...string) *Postgres {
	tb.Helper()
	server, remove, err := startTemporary(settings)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(remove)
	return server
}

// WithPostgres starts a server for all tests of a package, which TestMain calls: it runs them, ends the server and removes its files. It is an
// error if the server does not start, or the tests fail.
func WithPostgres(run func(*Postgres) int, settings ...string) error {
	server, remove, err := startTemporary(settings)
	if err != nil {
		return err
	}
	defer remove()
	if code := run(server); code != 0 {
		return fmt.Errorf("the tests ended with %d", code)
	}
	return nil
}

// startTemporary starts a server in a folder that is removed with it. Who has to run PostgreSQL for root cannot enter what tests have as TempDir.
func startTemporary(settings []string) (started *Postgres, remove func(), err error) {
	folder, err := os.MkdirTemp("", "postgres")
	if err != nil {
		return nil, nil, err
	}
	server := &Postgres{Dir: folder, Settings: settings}
	remove = func() {
		_ = server.Kill()
		_ = os.RemoveAll(folder)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := server.Start(ctx); err != nil {
		remove()
		return nil, nil, err
	}
	return server, remove, nil
}
