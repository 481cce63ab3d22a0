package bucket

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

// Another attempt makes sense only after some errors.
func TestErrorsThatCanPass(t *testing.T) {
	refusing := func(status int, code string) fault {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			refuse(w, status, code, "it is refused")
			return true
		}
	}
	for name, test := range map[string]struct {
		fault fault
		want  bool
	}{
		"the storage has failed":    {refusing(http.StatusServiceUnavailable, "SlowDown"), true},
		"the connection is cut":     {func(http.ResponseWriter, *http.Request) bool { cut(); return true }, true},
		"the access key is unknown": {refusing(http.StatusForbidden, "InvalidAccessKeyId"), false},
		"the bucket does not exist": {refusing(http.StatusNotFound, "NoSuchBucket"), false},
		"the bucket is full":        {refusing(http.StatusInsufficientStorage, "XMinioStorageFull"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			b, _ := s.open(t)
			folder := t.TempDir()
			makeBackup(t, folder, first, 10)
			s.inject(test.fault)
			if err := failedUpload(t, b, folder); Passes(err) != test.want {
				t.Errorf("Passes is %t, want %t: %v", Passes(err), test.want, err)
			}
		})
	}
}

func TestAnUntrustedCertificateDoesNotPass(t *testing.T) {
	started := httptest.NewTLSServer(newHandler(t))
	silenceServer(started)
	t.Cleanup(started.Close)
	b, _ := openWith(t, testSettings(started.URL), testLimits())
	if err := failedUpload(t, b, t.TempDir()); Passes(err) {
		t.Errorf("it passes: %v", err)
	}
}

func TestADamagedBackupDoesNotPass(t *testing.T) {
	b, _ := newServer(t).open(t)
	folder := t.TempDir()
	makeBackup(t, folder, first, 10)
	write(t, filepath.Join(folder, first, "dump"), []byte("another"))
	if err := failedUpload(t, b, folder); Passes(err) {
		t.Errorf("it passes: %v", err)
	}
}

// failedUpload returns the error of Upload.
func failedUpload(t *testing.T, b *Bucket, folder string) error {
	t.Helper()
	err := b.Upload(t.Context(), folder, Retention{Count: 1}, now())
	if err == nil {
		t.Fatal("there is no error")
	}
	return err
}
