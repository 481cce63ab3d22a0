package bucket

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/minio/minio-go/v7"
)

// filled returns a server with uploaded backups, and the folder that they are from.
func filled(t *testing.T, size int, names ...string) (*server, *Bucket, string) {
	t.Helper()
	s := newServer(t)
	b, _ := s.open(t)
	folder := t.TempDir()
	for _, name := range names {
		makeBackup(t, folder, name, size)
	}
	upload(t, b, folder)
	s.inject(nil)
	return s, b, folder
}

// wantFetched fetches the first backup and checks its files.
func wantFetched(t *testing.T, b *Bucket, folder, target string) {
	t.Helper()
	if got, err := b.Fetch(t.Context(), first, target); err != nil || got != first {
		t.Fatalf("fetched %q: %v", got, err)
	}
	wantSame(t, filepath.Join(folder, first), filepath.Join(target, first))
}

func TestFetchTakesTheNewest(t *testing.T) {
	s, b, folder := filled(t, 100, first, second)
	s.put(t, prefix+"/"+third+"/dump", "an incomplete backup")
	target := t.TempDir()
	if got, err := b.Fetch(t.Context(), "", target); err != nil || got != second {
		t.Fatalf("fetched %q: %v", got, err)
	}
	wantSame(t, filepath.Join(folder, second), filepath.Join(target, second))
}

func TestFetchNamesTheBackupsThatThereAre(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	target := t.TempDir()
	write(t, filepath.Join(target, "kept"), nil)
	s.putBackup(t, prefix+"-2", first)
	for _, name := range []string{"", first} {
		_, err := b.Fetch(t.Context(), name, target)
		wantError(t, err)
		if want := "there is no backup in s3://backups/prod/orders-db"; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	s.putBackup(t, prefix, second)
	s.putBackup(t, prefix, first)
	for _, name := range []string{third, "../" + first, "latest"} {
		_, err := b.Fetch(t.Context(), name, target)
		wantError(t, err)
		if want := "there is no backup " + name + " in s3://backups/prod/orders-db; there are: " + first + " " + second; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	if got := list(t, target); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("the folder has %s", got)
	}
}

func TestFetchDeletesWhatElseIsThere(t *testing.T) {
	_, b, folder := filled(t, 100, first)
	target := t.TempDir()
	for _, name := range []string{second, second + ".part", first, first + ".part", "lost+found"} {
		mkdir(t, filepath.Join(target, name))
		write(t, filepath.Join(target, name, "dump"), []byte("other bytes"))
	}
	write(t, filepath.Join(target, "note"), nil)
	wantFetched(t, b, folder, target)
	if got := list(t, target); !slices.Equal(got, []string{first, "lost+found"}) {
		t.Errorf("the folder has %s", got)
	}
}

func TestFetchFetchesNothingTwice(t *testing.T) {
	s, b, folder := filled(t, 100, first)
	target := t.TempDir()
	wantFetched(t, b, folder, target)
	s.inject(nil)
	wantFetched(t, b, folder, target)
	if _, requests := s.counted(); len(requests) != 0 {
		t.Errorf("requests for a named backup: %s", requests)
	}
	if got, err := b.Fetch(t.Context(), "", target); err != nil || got != first {
		t.Errorf("fetched %q: %v", got, err)
	}
	if sent, _ := s.counted(); sent != 0 {
		t.Errorf("the server has sent %d bytes", sent)
	}
	flip(t, filepath.Join(target, first, "dump"), 50)
	wantFetched(t, b, folder, target)
}

func TestFetchGoesOnWhereItWasKilled(t *testing.T) {
	s, b, folder := filled(t, 8*mib, first)
	target := t.TempDir()
	ctx, kill := context.WithCancel(t.Context())
	s.inject(func(w http.ResponseWriter, r *http.Request) bool {
		if isFor(r, http.MethodGet, "dump") {
			s.handler.ServeHTTP(&cutAnswer{ResponseWriter: w, left: 5 * mib, end: func() {
				waitForSize(t, target, 5*mib)
				kill()
				<-r.Context().Done()
			}}, r)
			return true
		}
		return false
	})
	_, err := b.Fetch(ctx, first, target)
	wantError(t, err, "fetch s3://backups/prod/orders-db/"+first+"/dump: context canceled")
	if got := list(t, target); !slices.Equal(got, []string{first + ".part"}) {
		t.Errorf("the folder has %s", got)
	}
	s.inject(nil)
	wantFetched(t, b, folder, target)
	if sent, _ := s.counted(); sent < 3*mib || sent > 3*mib+1000 {
		t.Errorf("the server has sent %d bytes instead of 3 MiB", sent)
	}
}

func TestFetchDoesNotMixObjects(t *testing.T) {
	s, b, folder := filled(t, 8*mib, first)
	target := t.TempDir()
	object, err := b.client.StatObject(t.Context(), bucketName, b.key(first, "dump"), minio.StatObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(target, first+".part")
	mkdir(t, part)
	write(t, filepath.Join(part, partialName("dump", object.ETag)), make([]byte, 9*mib)) // too long
	write(t, filepath.Join(part, partialName("dump", "another object")), make([]byte, 4*mib))
	wantFetched(t, b, folder, target)
	if sent, _ := s.counted(); sent < 8*mib {
		t.Errorf("the server has sent %d bytes", sent)
	}
}

func TestFetchNoticesThatAnObjectChanges(t *testing.T) {
	s, b, _ := filled(t, 8*mib, first)
	s.inject(func(w http.ResponseWriter, r *http.Request) bool {
		if isFor(r, http.MethodGet, "dump") && r.Header.Get("If-Match") != "" { // gofakes3 ignores this header.
			refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
			return true
		}
		return false
	})
	_, err := b.Fetch(t.Context(), "", t.TempDir())
	wantError(t, err, "fetch s3://backups/prod/orders-db/"+first+"/dump: ", "(PreconditionFailed)")
}

func TestFetchNoticesDamage(t *testing.T) {
	for name, test := range map[string]struct{ file, content, want string }{
		"dump":         {"dump", strings.Repeat("x", 100), "the checksum of dump is another one"},
		"about":        {"about", "", "the checksum of about is another one"},
		"roles":        {"roles", "more", "the checksum of roles is another one"},
		"checksums":    {checksumFile, "", "sha256 has no checksum of about"},
		"no checksums": {checksumFile, "x  dump\n\nxx\n", "sha256 has no checksum of about"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, b, folder := filled(t, 100, first)
			right, err := os.ReadFile(filepath.Join(folder, first, test.file))
			if err != nil {
				t.Fatal(err)
			}
			s.put(t, prefix+"/"+first+"/"+test.file, test.content)
			target := t.TempDir()
			_, err = b.Fetch(t.Context(), first, target)
			wantError(t, err)
			if want := "the backup " + first + " is damaged, because " + test.want; err.Error() != want {
				t.Errorf("error %q, want %q", err, want)
			}
			if got := list(t, target); len(got) != 0 {
				t.Errorf("the folder has %s", got)
			}
			s.put(t, prefix+"/"+first+"/"+test.file, string(right))
			wantFetched(t, b, folder, target)
		})
	}
}

func TestFetchReportsAFullDisk(t *testing.T) {
	_, b, _ := filled(t, 100, first)
	target := t.TempDir()
	object, err := b.client.StatObject(t.Context(), bucketName, b.key(first, "dump"), minio.StatObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mkdir(t, filepath.Join(target, first+".part"))
	if err := os.Symlink("/dev/full", filepath.Join(target, first+".part", partialName("dump", object.ETag))); err != nil {
		t.Fatal(err)
	}
	_, err = b.Fetch(t.Context(), first, target)
	wantError(t, err, "fetch s3://backups/prod/orders-db/"+first+"/dump: ", "no space left on device")
	if !isLocal(err) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v does not wrap ENOSPC", err)
	}
}
