package servers

import "testing"

// StartRedis starts a server for a test, with more lines of configuration if there are any. It ends, and its files are removed, with
// the test. The test fails if there is no redis-server: tools/servers.sh finds or installs it.
func StartRedis(tb testing.TB, settings ...string) *Redis {
	tb.Helper()
	server := &Redis{Dir: tb.TempDir(), Settings: settings}
	tb.Cleanup(func() { _ = server.Kill() })
	if err := server.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return server
}
