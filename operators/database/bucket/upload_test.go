package bucket

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

func TestUploadSendsWhatTheBucketLacks(t *testing.T) {
	s := newServer(t)
	b, lines := s.open(t)
	folder := t.TempDir()
	makeBackup(t, folder, first, 100)
	upload(t, b, folder)
	makeBackup(t, folder, second, 11*mib)
	makeBackup(t, folder, third, 10*mib)
	s.inject(nil)
	upload(t, b, folder)
	wantComplete(t, b, first, second, third)
	if _, requests := s.counted(); slices.ContainsFunc(requests, func(one string) bool { return strings.HasPrefix(one, "PUT") && strings.Contains(one, first) }) {
		t.Errorf("sent a backup twice: %s", requests)
	}
	want := fmt.Sprintf("sent the backup %s\nsent the backup %s\nsent the backup %s\n", first, third, second)
	if lines.String() != want {
		t.Errorf("log %q, want %q", lines, want)
	}
	for _, name := range []string{first, second, third} {
		target := t.TempDir()
		if got, err := b.Fetch(t.Context(), name, target); err != nil || got != name {
			t.Fatalf("fetched %s: %v", got, err)
		}
		wantSame(t, filepath.Join(folder, name), filepath.Join(target, name))
	}
}

func TestUploadSendsTheChecksumsLast(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	folder := t.TempDir()
	makeBackup(t, folder, first, 6*mib)
	upload(t, b, folder)
	_, requests := s.counted()
	last := ""
	for _, one := range requests {
		if strings.HasPrefix(one, "PUT") {
			last = one
		}
	}
	if !strings.HasSuffix(last, "/"+checksumFile) {
		t.Errorf("sent last: %s", last)
	}
}

func TestUploadLogsTheProgress(t *testing.T) {
	s := newServer(t)
	limits := testLimits()
	limits.report = 0
	b, lines := openWith(t, testSettings(s.url), limits)
	folder := t.TempDir()
	makeBackup(t, folder, first, 11*mib)
	upload(t, b, folder)
	if _, err := b.Fetch(t.Context(), "", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"sent 5 of 11 MiB of ", "sent 10 of 11 MiB of ", "fetched 11 of 11 MiB of "} {
		if !strings.Contains(lines.String(), line+first+"/dump\n") {
			t.Errorf("the log lacks %q", line)
		}
	}
}

func TestUploadDeletesWhatNeedNotBeKept(t *testing.T) {
	s := newServer(t)
	b, lines := s.open(t)
	old, older := "20261001T030000Z", "20261002T030000Z"
	s.putBackup(t, prefix, old)
	s.putBackup(t, prefix, older)
	folder := t.TempDir()
	makeBackup(t, folder, second, 100)
	makeBackup(t, folder, third, 100)
	s.inject(nil)
	if err := b.Upload(t.Context(), folder, Retention{Days: 3}, now()); err != nil {
		t.Fatal(err)
	}
	wantComplete(t, b, second, third)
	if !strings.HasSuffix(lines.String(), "deleted the backup "+old+"\ndeleted the backup "+older+"\n") {
		t.Errorf("log: %s", lines)
	}
	var deleted []string
	_, requests := s.counted()
	for _, one := range requests {
		if strings.HasPrefix(one, "DELETE") && strings.Contains(one, old) {
			deleted = append(deleted, one[strings.LastIndex(one, "/")+1:])
		}
	}
	if len(deleted) != 4 || deleted[0] != checksumFile {
		t.Errorf("deleted %s, want %s first", deleted, checksumFile)
	}
}

func TestUploadDoesNotSendWhatNeedNotBeKept(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	s.putBackup(t, prefix, second)
	folder := t.TempDir()
	makeBackup(t, folder, first, 100)
	makeBackup(t, folder, third, 100)
	if err := b.Upload(t.Context(), folder, Retention{Count: 2}, now()); err != nil {
		t.Fatal(err)
	}
	wantComplete(t, b, second, third)
	if got := len(s.keys(t)); got != 8 {
		t.Errorf("%d objects", got)
	}
}

func TestUploadOfAnEmptyFolderKeepsTheBucket(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	s.putBackup(t, prefix, first)
	if err := b.Upload(t.Context(), t.TempDir(), Retention{Days: 1}, now().AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	wantComplete(t, b, first)
}

func TestUploadTouchesNoForeignKeys(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	old := "20200101T030000Z"
	s.putBackup(t, prefix+"-2", old)
	s.putBackup(t, "prod", old)
	for _, key := range []string{
		"note", prefix, prefix + "/", prefix + "/note", prefix + "/" + old, prefix + "/" + old + "/", prefix + "/" + old + "/note",
		prefix + "/" + old + "/dump/part", prefix + "/" + old + ".part/dump", prefix + "/20200101/dump", prefix + "/a/" + old + "/dump", prefix + "2/" + old + "/dump",
	} {
		s.put(t, key, "foreign")
	}
	before := s.keys(t)
	folder := t.TempDir()
	makeBackup(t, folder, third, 100)
	upload(t, b, folder)
	after := slices.DeleteFunc(s.keys(t), func(key string) bool { return strings.Contains(key, third) })
	if !slices.Equal(before, after) {
		t.Errorf("keys %q, want %q", after, before)
	}
}

func TestUploadDeletesOldRemains(t *testing.T) {
	s := newServer(t)
	b, lines := s.open(t)
	old, recent := "20261125T120000Z", "20261126T120000Z" // 39 and 15 hours ago
	for _, name := range []string{old, recent} {
		s.put(t, prefix+"/"+name+"/dump", "part of a backup")
	}
	folder := t.TempDir()
	makeBackup(t, folder, third, 100)
	if err := b.Upload(t.Context(), folder, Retention{Count: 1}, now()); err != nil {
		t.Fatal(err)
	}
	keys := strings.Join(s.keys(t), " ")
	if strings.Contains(keys, old) || !strings.Contains(keys, recent) {
		t.Errorf("keys: %s", keys)
	}
	if !strings.Contains(lines.String(), "deleted the incomplete backup "+old+"\n") {
		t.Errorf("log: %s", lines)
	}
}

func TestUploadCompletesARemainder(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	s.put(t, prefix+"/"+first+"/dump", "other bytes")
	folder := t.TempDir()
	makeBackup(t, folder, first, 100)
	upload(t, b, folder)
	target := t.TempDir()
	if _, err := b.Fetch(t.Context(), "", target); err != nil {
		t.Fatal(err)
	}
	wantSame(t, filepath.Join(folder, first), filepath.Join(target, first))
}

func TestUploadAbortsOldUploads(t *testing.T) {
	s := newServer(t)
	b, lines := s.open(t)
	folder := t.TempDir()
	makeBackup(t, folder, third, 100)
	mine, foreign := prefix+"/"+first+"/dump", prefix+"-2/"+first+"/dump"
	for _, key := range []string{mine, foreign} {
		if _, err := b.client.NewMultipartUpload(t.Context(), bucketName, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	incomplete := func() []string {
		var keys []string
		for upload := range b.client.ListIncompleteUploads(t.Context(), bucketName, "", true) {
			keys = append(keys, upload.Key)
		}
		slices.Sort(keys)
		return keys
	}
	upload(t, b, folder)
	if got := incomplete(); !slices.Equal(got, []string{foreign, mine}) {
		t.Errorf("a recent upload was aborted: %s", got)
	}
	if err := b.Upload(t.Context(), folder, Retention{Count: 1}, now().Add(25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := incomplete(); !slices.Equal(got, []string{foreign}) {
		t.Errorf("incomplete uploads: %s", got)
	}
	if !strings.Contains(lines.String(), "aborted an incomplete upload of s3://"+bucketName+"/"+mine) {
		t.Errorf("log: %s", lines)
	}
}

func TestUploadListsManyKeys(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 300 {
		s.putBackup(t, prefix, begun.AddDate(0, 0, i).Format(nameLayout))
	}
	folder := t.TempDir()
	makeBackup(t, folder, third, 100)
	if err := b.Upload(t.Context(), folder, Retention{Count: 299}, now()); err != nil {
		t.Fatal(err)
	}
	if _, requests := s.counted(); !slices.ContainsFunc(requests, func(one string) bool {
		return strings.Contains(one, "continuation-token=") && !strings.Contains(one, "continuation-token=&")
	}) {
		t.Error("the list had one page")
	}
	remote, err := b.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := remote.complete()
	if len(got) != 299 || got[0] != begun.AddDate(0, 0, 2).Format(nameLayout) || got[298] != third {
		t.Errorf("%d backups, from %s to %s", len(got), got[0], got[len(got)-1])
	}
}

func TestUploadSkipsADamagedBackup(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(t *testing.T, folder string)
		want   string
	}{
		"last byte of a small dump": {func(t *testing.T, folder string) { flip(t, filepath.Join(folder, "dump"), 99) }, "the checksum of dump is another one"},
		"end of a dump of whole parts": {func(t *testing.T, folder string) {
			changeSize(t, filepath.Join(folder, "dump"), 10*mib)
		}, "the checksum of dump is another one"},
		"end of a dump of several parts": {func(t *testing.T, folder string) {
			changeSize(t, filepath.Join(folder, "dump"), 11*mib)
		}, "the checksum of dump is another one"},
		"empty dump":   {func(t *testing.T, folder string) { changeSize(t, filepath.Join(folder, "dump"), 0) }, "the checksum of dump is another one"},
		"longer roles": {func(t *testing.T, folder string) { changeSize(t, filepath.Join(folder, "roles"), 1) }, "the checksum of roles is another one"},
		"no checksum":  {func(t *testing.T, folder string) { changeSize(t, filepath.Join(folder, checksumFile), 90) }, "sha256 has no checksum of "},
		"no about":     {func(t *testing.T, folder string) { remove(t, filepath.Join(folder, "about")) }, "about: no such file"},
		"no checksums": {func(t *testing.T, folder string) { remove(t, filepath.Join(folder, checksumFile)) }, "sha256: no such file"},
		"dump a folder": {func(t *testing.T, folder string) {
			remove(t, filepath.Join(folder, "dump"))
			mkdir(t, filepath.Join(folder, "dump"))
		}, "dump: is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			b, lines := s.open(t)
			s.putBackup(t, prefix, "20200101T030000Z")
			folder := t.TempDir()
			for _, name := range []string{first, second, third} {
				makeBackup(t, folder, name, 100)
			}
			test.damage(t, filepath.Join(folder, second))
			wantError(t, b.Upload(t.Context(), folder, Retention{Count: 3}, now()), second, test.want)
			wantComplete(t, b, "20200101T030000Z", first, third)
			if strings.Contains(lines.String(), second) || strings.Contains(lines.String(), "deleted") {
				t.Errorf("log: %s", lines)
			}
		})
	}
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[at] ^= 1
	write(t, path, content)
}

func changeSize(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestUploadKilledIsCompletedByTheNext(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	folder := t.TempDir()
	makeBackup(t, folder, first, 11*mib)
	ctx, kill := context.WithCancel(t.Context())
	s.inject(func(_ http.ResponseWriter, r *http.Request) bool {
		if isFor(r, http.MethodPut, "dump") && r.URL.Query().Get("partNumber") == "2" {
			kill()
			_, _ = io.Copy(io.Discard, r.Body)
			cut()
		}
		return false
	})
	wantError(t, b.Upload(ctx, folder, Retention{Count: 1}, now()), "send s3://backups/prod/orders-db/"+first+"/dump: ", "context canceled")
	s.inject(nil)
	wantComplete(t, b)
	upload(t, b, folder)
	wantComplete(t, b, first)
}
