package bucket

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cutAnswer calls end instead of writing more than some bytes.
type cutAnswer struct {
	http.ResponseWriter

	left int
	end  func()
}

func (a *cutAnswer) Write(data []byte) (int, error) {
	if len(data) <= a.left {
		a.left -= len(data)
		return a.ResponseWriter.Write(data)
	}
	_, _ = a.ResponseWriter.Write(data[:a.left])
	_ = http.NewResponseController(a.ResponseWriter).Flush()
	a.left = 0
	a.end()
	return 0, io.ErrClosedPipe
}

// cutRequests ends the connection in the middle of a request for an object with the dump.
func cutRequests(w http.ResponseWriter, r *http.Request) bool {
	if !isFor(r, http.MethodPut, "dump") {
		return false
	}
	_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
	dropConnection(w)
	return true
}

// dropConnection ends the connection without an answer.
func dropConnection(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// waitForSize waits until a file in a folder has a size.
func waitForSize(t *testing.T, folder string, size int64) {
	t.Helper()
	found := func() bool {
		files, err := filepath.Glob(filepath.Join(folder, "*", "dump-*"))
		return err == nil && len(files) == 1 && fileSize(files[0]) >= size
	}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	deadline := time.After(10 * time.Second)
	for !found() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Error("the file stays too small")
			return
		}
	}
}

func TestUploadGoesOnAfterACut(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "parts": 11 * mib} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			b, _ := s.open(t)
			folder := t.TempDir()
			makeBackup(t, folder, first, size)
			s.inject(once(cutRequests))
			upload(t, b, folder)
			target := t.TempDir()
			wantFetched(t, b, folder, target)
		})
	}
}

func TestUploadReportsWhatIsCutEachTime(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "parts": 11 * mib} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			b, lines := s.open(t)
			folder := t.TempDir()
			makeBackup(t, folder, first, size)
			makeBackup(t, folder, second, size)
			s.inject(cutRequests)
			err := b.Upload(t.Context(), folder, Retention{Count: 2}, now())
			wantError(t, err, "send s3://backups/prod/orders-db/"+second+"/dump: ")
			if strings.Contains(err.Error(), first) {
				t.Errorf("it went on with the next backup: %v", err)
			}
			s.inject(nil)
			wantComplete(t, b)
			if lines.Len() != 0 {
				t.Errorf("log: %s", lines)
			}
		})
	}
}

func TestFetchGoesOnAfterACut(t *testing.T) {
	s, b, folder := filled(t, 8*mib, first)
	cutGet := func(w http.ResponseWriter, r *http.Request) bool {
		if !isFor(r, http.MethodGet, "dump") {
			return false
		}
		s.handler.ServeHTTP(&cutAnswer{ResponseWriter: w, left: 3 * mib, end: cut}, r)
		return true
	}
	for name, f := range map[string]fault{"once": once(cutGet), "often": cutGet} {
		t.Run(name, func(t *testing.T) {
			s.inject(f)
			wantFetched(t, b, folder, t.TempDir())
		})
	}
}

func TestFetchReportsWhatIsCutEachTime(t *testing.T) {
	s, b, folder := filled(t, 8*mib, first)
	s.inject(func(w http.ResponseWriter, r *http.Request) bool {
		if !isFor(r, http.MethodGet, "dump") {
			return false
		}
		s.handler.ServeHTTP(&cutAnswer{ResponseWriter: w, left: 1000, end: cut}, r)
		return true
	})
	target := t.TempDir()
	_, err := b.Fetch(t.Context(), first, target)
	wantError(t, err, "fetch s3://backups/prod/orders-db/"+first+"/dump: the transfer was interrupted")
	s.inject(nil)
	wantFetched(t, b, folder, target)
}

// wantBothFail checks the errors of an upload and a fetch, and that both end soon.
func wantBothFail(t *testing.T, s *server, f fault, texts ...string) {
	t.Helper()
	s.putBackup(t, prefix, first)
	b, lines := s.openWithShortTimeout(t)
	folder := t.TempDir()
	makeBackup(t, folder, second, 100)
	s.inject(f)
	wantError(t, b.Upload(t.Context(), folder, Retention{Count: 1}, now()), texts...)
	_, err := b.Fetch(t.Context(), "", t.TempDir())
	wantError(t, err, texts...)
	if lines.Len() != 0 {
		t.Errorf("log: %s", lines)
	}
}

func TestRefusedRequestsAreNotRetried(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		code   string
		answer string
		want   string
	}{
		"unknown access key": {
			http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.",
			"list s3://backups/prod/orders-db: The AWS Access Key Id you provided does not exist in our records (InvalidAccessKeyId)",
		},
		"wrong secret key": {
			http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match.",
			"list s3://backups/prod/orders-db: The request signature we calculated does not match (SignatureDoesNotMatch)",
		},
		"no right":  {http.StatusForbidden, "AccessDenied", "", "list s3://backups/prod/orders-db: Access Denied (AccessDenied)"},
		"no bucket": {http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist", "does not exist (NoSuchBucket)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			wantBothFail(t, s, func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.Header.Get("Authorization"), "Credential="+accessKey+"/") {
					t.Errorf("the request has no access key: %s", r.Header)
				}
				refuse(w, test.status, test.code, test.answer)
				return true
			}, test.want)
			if _, requests := s.counted(); len(requests) != 2 {
				t.Errorf("requests: %s", requests)
			}
		})
	}
}

func TestUnavailableServersEndWithAnError(t *testing.T) {
	for name, test := range map[string]struct {
		fault fault
		want  string
	}{
		"no answer": {func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return true
		}, "timeout awaiting response headers"},
		"connections end": {func(w http.ResponseWriter, _ *http.Request) bool { dropConnection(w); return true }, "the server closed the connection"},
		"busy": {func(w http.ResponseWriter, _ *http.Request) bool {
			refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
			return true
		}, "Please reduce your request rate (SlowDown)"},
		"another protocol": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<html>Bad gateway</html>")
			return true
		}, "502 Bad Gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantBothFail(t, newServer(t), test.fault, "list s3://backups/prod/orders-db: ", test.want)
		})
	}
	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		settings := testSettings("http://127.0.0.1:1")
		b, _ := openWith(t, settings, testLimits())
		_, err := b.Fetch(t.Context(), "", t.TempDir())
		wantError(t, err, "list s3://backups/prod/orders-db: dial tcp 127.0.0.1:1: connect: connection refused")
	})
}

// openWithShortTimeout returns a bucket that does not wait long for the server.
func (s *server) openWithShortTimeout(t *testing.T) (*Bucket, *safeLog) {
	t.Helper()
	limits := testLimits()
	limits.timeout = 200 * time.Millisecond
	return openWith(t, testSettings(s.url), limits)
}

func TestSilentConnectionsEnd(t *testing.T) {
	t.Run("upload", func(t *testing.T) {
		t.Parallel()
		s := newServer(t)
		b, _ := s.openWithShortTimeout(t)
		folder := t.TempDir()
		makeBackup(t, folder, first, 11*mib)
		ended := make(chan struct{})
		t.Cleanup(func() { close(ended) })
		s.inject(func(_ http.ResponseWriter, r *http.Request) bool { // It reads nothing, so the client cannot send.
			if isFor(r, http.MethodPut, "dump") {
				<-ended
				return true
			}
			return false
		})
		wantError(t, b.Upload(t.Context(), folder, Retention{Count: 1}, now()), "send s3://backups/prod/orders-db/"+first+"/dump: ", "timeout")
	})
	t.Run("fetch", func(t *testing.T) {
		t.Parallel()
		s, _, _ := filled(t, 8*mib, first)
		b, _ := s.openWithShortTimeout(t)
		s.inject(func(w http.ResponseWriter, r *http.Request) bool {
			if !isFor(r, http.MethodGet, "dump") {
				return false
			}
			s.handler.ServeHTTP(&cutAnswer{ResponseWriter: w, left: 1000, end: func() { <-r.Context().Done() }}, r)
			return true
		})
		_, err := b.Fetch(t.Context(), first, t.TempDir())
		wantError(t, err, "fetch s3://backups/prod/orders-db/"+first+"/dump: the transfer was interrupted", "i/o timeout")
	})
}

func TestUploadEndsAtTheDeadline(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	folder := t.TempDir()
	makeBackup(t, folder, first, 11*mib)
	s.inject(func(_ http.ResponseWriter, r *http.Request) bool {
		if isFor(r, http.MethodPut, "dump") {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return true
		}
		return false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := b.Upload(ctx, folder, Retention{Count: 1}, now())
	wantError(t, err, "send s3://backups/prod/orders-db/"+first+"/dump: context deadline exceeded")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v does not wrap the cause", err)
	}
	s.inject(nil)
	wantComplete(t, b)
}

func TestUploadReportsAFullBucket(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	s.putBackup(t, prefix, "20200101T030000Z")
	folder := t.TempDir()
	makeBackup(t, folder, first, 11*mib)
	s.inject(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") != "2" {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		refuse(w, http.StatusInsufficientStorage, "XMinioStorageFull", "Storage backend has reached its minimum free drive threshold.")
		return true
	})
	wantError(t, b.Upload(t.Context(), folder, Retention{Count: 1}, now()),
		"send s3://backups/prod/orders-db/"+first+"/dump: Storage backend has reached its minimum free drive threshold (XMinioStorageFull)")
	_, requests := s.counted()
	if last := requests[len(requests)-1]; !strings.HasPrefix(last, "DELETE") || !strings.Contains(last, "uploadId=") {
		t.Errorf("the upload was not aborted, the last request is %s", last)
	}
	s.inject(nil)
	wantComplete(t, b, "20200101T030000Z")
}

func TestUploadComparesTheSizeInTheBucket(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	folder := t.TempDir()
	makeBackup(t, folder, first, 100)
	s.inject(func(w http.ResponseWriter, r *http.Request) bool {
		if !isFor(r, http.MethodHead, checksumFile) {
			return false
		}
		w.Header().Set("Content-Length", "7")
		w.Header().Set("Last-Modified", now().Format(http.TimeFormat))
		return true
	})
	wantError(t, b.Upload(t.Context(), folder, Retention{Count: 1}, now()), "check s3://backups/prod/orders-db/"+first+"/sha256: the object has 7 bytes instead of ")
	s.inject(nil)
	wantComplete(t, b)
}

func TestUploadDoesNotAbortWhatAServerDoesNotList(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	folder := t.TempDir()
	makeBackup(t, folder, first, 100)
	refuseList := func(code string) fault {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if _, ok := r.URL.Query()["uploads"]; !ok || r.Method != http.MethodGet {
				return false
			}
			refuse(w, http.StatusNotImplemented, code, "No.")
			return true
		}
	}
	s.inject(refuseList("NotImplemented"))
	upload(t, b, folder)
	s.inject(refuseList("AccessDenied"))
	wantError(t, b.Upload(t.Context(), folder, Retention{Count: 1}, now()), "list incomplete uploads in s3://backups/prod/orders-db: No (AccessDenied)")
}

func TestPrivateAuthority(t *testing.T) {
	s := newHandler(t)
	started := httptest.NewUnstartedServer(s)
	silenceServer(started)
	started.StartTLS()
	t.Cleanup(started.Close)
	settings := testSettings(started.URL)
	settings.Authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: started.Certificate().Raw}))
	b, _ := openWith(t, settings, testLimits())
	folder, target := t.TempDir(), t.TempDir()
	makeBackup(t, folder, first, 11*mib)
	upload(t, b, folder)
	wantFetched(t, b, folder, target)

	settings.Authority = ""
	b, _ = openWith(t, settings, testLimits())
	_, err := b.Fetch(t.Context(), "", target)
	wantError(t, err, "list s3://backups/prod/orders-db: tls: failed to verify certificate: x509: certificate signed by unknown authority")
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
