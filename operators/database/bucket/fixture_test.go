package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

const (
	bucketName = "backups"
	prefix     = "prod/orders-db"
	accessKey  = "KEYOFTHETEST"
	secretKey  = "the-secret-of-the-test"
	mib        = 1 << 20
	first      = "20261124T030000Z"
	second     = "20261125T030000Z"
	third      = "20261126T030000Z"
)

// now is a day after the last backup.
func now() time.Time { return time.Date(2026, 11, 27, 3, 5, 0, 0, time.UTC) }

// fault changes how the server answers a request. It reports whether it has answered.
type fault func(w http.ResponseWriter, r *http.Request) bool

// server is an S3 server with a bucket and faults.
type server struct {
	*s3mem.Backend

	url     string
	handler http.Handler

	mu       sync.Mutex
	fault    fault
	sent     int64 // bytes of the bodies of answers to GET requests for objects
	requests []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := newHandler(t)
	started := httptest.NewUnstartedServer(s)
	silenceServer(started)
	started.Start()
	t.Cleanup(started.Close)
	s.url = started.URL
	return s
}

func newHandler(t *testing.T) *server {
	t.Helper()
	times := gofakes3.FixedTimeSource(now())
	s := &server{Backend: s3mem.New(s3mem.WithTimeSource(times))}
	s.handler = gofakes3.New(s.Backend, gofakes3.WithTimeSource(times), gofakes3.WithTimeSkewLimit(0)).Server()
	if err := s.CreateBucket(bucketName); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/"+bucketName+"/"+prefix) {
		w = &countedAnswer{w, s}
	}
	s.handler.ServeHTTP(w, r)
}

// inject sets the fault, or none for nil, and forgets what was counted.
func (s *server) inject(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.sent, s.requests = f, 0, nil
}

// counted returns the bytes of objects and the requests since the last call of inject.
func (s *server) counted() (sent int64, requests []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, slices.Clone(s.requests)
}

type countedAnswer struct {
	http.ResponseWriter

	server *server
}

func (a *countedAnswer) Write(data []byte) (int, error) {
	a.server.mu.Lock()
	a.server.sent += int64(len(data))
	a.server.mu.Unlock()
	return a.ResponseWriter.Write(data)
}

// keys returns the keys of all objects in the bucket.
func (s *server) keys(t *testing.T) []string {
	t.Helper()
	list, err := s.ListBucket(bucketName, nil, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, object := range list.Contents {
		keys = append(keys, object.Key)
	}
	slices.Sort(keys)
	return keys
}

// put makes an object without the package.
func (s *server) put(t *testing.T, key, content string) {
	t.Helper()
	if _, err := s.PutObject(bucketName, key, map[string]string{}, strings.NewReader(content), int64(len(content)), nil); err != nil {
		t.Fatal(err)
	}
}

// putBackup makes an object for each file of a backup.
func (s *server) putBackup(t *testing.T, prefix, name string) {
	t.Helper()
	for _, file := range allFiles() {
		s.put(t, prefix+"/"+name+"/"+file, file)
	}
}

// safeLog fails the test if a line has the secret key.
type safeLog struct {
	bytes.Buffer

	t *testing.T
}

func (l *safeLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(secretKey)) {
		l.t.Errorf("the log has the secret key: %s", line)
	}
	return l.Buffer.Write(line)
}

func testSettings(url string) Settings {
	return Settings{Endpoint: url, Region: "us-east-1", Bucket: bucketName, Prefix: prefix, AccessKey: accessKey, SecretKey: secretKey}
}

func testLimits() limits {
	return limits{
		partSize: 5 * mib, attempts: 2, timeout: 10 * time.Second, lockWait: 50 * time.Millisecond, lockPoll: time.Millisecond, report: time.Hour,
	}
}

// open returns the bucket of the server and its log.
func (s *server) open(t *testing.T) (*Bucket, *safeLog) {
	t.Helper()
	return openWith(t, testSettings(s.url), testLimits())
}

func openWith(t *testing.T, settings Settings, limits limits) (*Bucket, *safeLog) {
	t.Helper()
	lines := &safeLog{t: t}
	b, err := open(settings, lines, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.CredContext().Client.CloseIdleConnections)
	return b, lines
}

// makeBackup makes a backup in a folder, as backup.sh does.
func makeBackup(t *testing.T, folder, name string, size int) {
	t.Helper()
	dump := make([]byte, size)
	chance := rand.NewChaCha8(sha256.Sum256([]byte(name)))
	if _, err := chance.Read(dump); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"dump": dump, "about": []byte("18\napp\n"), "roles": nil}
	var sums strings.Builder
	for _, file := range []string{"dump", "about", "roles"} {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[file]), file)
	}
	files[checksumFile] = []byte(sums.String())
	if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range files {
		write(t, filepath.Join(folder, name, file), content)
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantSame checks that a folder has exactly the files of a backup.
func wantSame(t *testing.T, want, got string) {
	t.Helper()
	if names := list(t, got); !slices.Equal(names, []string{"about", "dump", "roles", "sha256"}) {
		t.Errorf("%s has the files %s", got, names)
	}
	for _, file := range allFiles() {
		before, err := os.ReadFile(filepath.Join(want, file))
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(filepath.Join(got, file))
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: %d bytes are not the %d bytes of the backup: %v", file, len(after), len(before), err)
		}
	}
}

func list(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// wantError checks that an error has texts, and not the secret key.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q lacks %q", err, text)
		}
	}
	if strings.Contains(err.Error(), secretKey) {
		t.Errorf("error %q has the secret key", err)
	}
}

// wantComplete checks which backups of the prefix are complete in the bucket.
func wantComplete(t *testing.T, b *Bucket, want ...string) {
	t.Helper()
	remote, err := b.list(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got := remote.complete(); !slices.Equal(got, want) {
		t.Errorf("complete backups in the bucket: %s, want %s", got, want)
	}
}

// upload uploads the backups of a folder and keeps ten.
func upload(t *testing.T, b *Bucket, folder string) {
	t.Helper()
	if err := b.Upload(t.Context(), folder, Retention{Count: 10}, now()); err != nil {
		t.Fatal(err)
	}
}

// isFor reports whether a request is about a file of a backup with a method.
func isFor(r *http.Request, method, file string) bool {
	return r.Method == method && strings.HasSuffix(r.URL.Path, "/"+file)
}

// once lets a fault occur at its first request only.
func once(f fault) fault {
	var mu sync.Mutex
	occurred := false
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if occurred {
			return false
		}
		occurred = f(w, r)
		return occurred
	}
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}

// cut ends the connection of the answer.
func cut() { panic(http.ErrAbortHandler) }

// silenceServer hides what the server logs about cut connections.
func silenceServer(started *httptest.Server) { started.Config.ErrorLog = log.New(io.Discard, "", 0) }
