package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/einmal-operators/einmal/operators/database/bucket"
)

// commandWith returns a command with variables of the environment, and its log.
func commandWith(variables map[string]string) (command, *strings.Builder) {
	var log strings.Builder
	return command{getenv: func(name string) string { return variables[name] }, out: &log}, &log
}

// The containers of a Job and of a new database get a backup into a bucket and back.
func TestABackupGoesThroughABucket(t *testing.T) {
	objects := s3mem.New()
	if err := objects.CreateBucket("shop"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(objects).Server())
	t.Cleanup(server.Close)
	variables := map[string]string{
		"S3_ENDPOINT": server.URL, "S3_REGION": "us-east-1", "S3_BUCKET": "shop", "S3_PREFIX": "blue/prod/orders-db", "S3_ACCESS_KEY": "key", "S3_SECRET_KEY": "secret",
		"KEEP_COUNT": "7", "RESTORE": "newest",
	}
	c, log := commandWith(variables)
	from, to := t.TempDir(), t.TempDir()
	const name = "20261127T030000Z"
	writeBackup(t, filepath.Join(from, name), map[string]string{"dump": "a dump", "about": "16\nshop\n", "roles": ""})
	if err := c.upload(t.Context(), []string{from}); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if err := c.fetch(t.Context(), []string{"--unless", filepath.Join(to, "pgdata"), filepath.Join(to, "fetched")}); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	got, err := os.ReadFile(filepath.Join(to, "fetched", name, "dump"))
	if diff := cmp.Diff("a dump", string(got)); diff != "" || err != nil {
		t.Errorf("%v; the dump (-want +got):\n%s", err, diff)
	}
	if err := c.fetch(t.Context(), []string{"--unless", to, filepath.Join(to, "again")}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(to, "again")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a backup was fetched although there is a database: %v", err)
	}
}

// What a manifest that was edited by hand can lack is named.
func TestACommandNamesTheVariableThatIsWrong(t *testing.T) {
	whole := map[string]string{
		"S3_ENDPOINT": "https://s3.example.com", "S3_BUCKET": "shop", "S3_ACCESS_KEY": "key", "S3_SECRET_KEY": "secret", "KEEP_COUNT": "7",
	}
	for name, test := range map[string]struct{ variable, value, want string }{
		"no retention":       {"KEEP_COUNT", "", "set either KEEP_COUNT or KEEP_DAYS"},
		"two retentions":     {"KEEP_DAYS", "30", "set either KEEP_COUNT or KEEP_DAYS"},
		"a wrong retention":  {"KEEP_COUNT", "many", `the variable KEEP_COUNT must be a number above 0: it is "many"`},
		"a wrong endpoint":   {"S3_ENDPOINT", "s3.example.com", "endpoint"},
		"no bucket":          {"S3_BUCKET", "", "bucket: must not be empty"},
		"an authority of no": {"S3_AUTHORITY", "none", "certificate authority: PEM without a certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			variables := maps.Clone(whole)
			variables[test.variable] = test.value
			c, _ := commandWith(variables)
			if err := c.upload(t.Context(), []string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestACommandShowsItsUsage(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      error
	}{
		"help":         {[]string{"--help"}, flag.ErrHelp},
		"no folder":    {nil, errUsage},
		"wrong option": {[]string{"--wrong", "x"}, errUsage},
	} {
		t.Run(name, func(t *testing.T) {
			c, log := commandWith(nil)
			if err := c.upload(t.Context(), test.arguments); !errors.Is(err, test.want) || !strings.Contains(log.String(), "Usage: database upload-backups FOLDER") {
				t.Errorf("the error is %v, and the output:\n%s", err, log)
			}
		})
	}
}

// An error that passes by itself is followed by other attempts, and another error ends the command.
func TestBackupsAreCopiedAgainAfterAnErrorThatPasses(t *testing.T) {
	wrong := errors.New("a damaged backup")
	passing := unreachable(t)
	for name, test := range map[string]struct {
		results []error
		want    error
	}{
		"it passes":      {[]error{passing, passing, nil}, nil},
		"it stays":       {[]error{passing, passing, passing}, passing},
		"it is another":  {[]error{passing, wrong}, wrong},
		"it is no error": {[]error{nil}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := commandWith(nil)
			c.pauses = []time.Duration{time.Millisecond, time.Millisecond}
			calls := 0
			err := c.again(t.Context(), func() error { calls++; return test.results[calls-1] })
			if !errors.Is(err, test.want) || calls != len(test.results) {
				t.Errorf("after %d attempts, the error is %v, want %v after %d", calls, err, test.want, len(test.results))
			}
		})
	}
}

// unreachable returns the error of a storage that is not reached.
func unreachable(t *testing.T) error {
	t.Helper()
	server := httptest.NewServer(nil)
	server.Close()
	to, err := bucket.Open(bucket.Settings{Endpoint: server.URL, Bucket: "shop", AccessKey: "key", SecretKey: "secret"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // The client tries again for a minute.
	defer cancel()
	return to.Upload(ctx, t.TempDir(), bucket.Retention{Count: 1}, time.Now())
}

// writeBackup writes the files of a backup and their checksums.
func writeBackup(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	sums := ""
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(text)), name)
	}
	if err := os.WriteFile(filepath.Join(folder, "sha256"), []byte(sums), 0o600); err != nil {
		t.Fatal(err)
	}
}
