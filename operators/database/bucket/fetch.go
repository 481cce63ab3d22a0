package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Fetch fetches a backup, or the newest for "", into a folder of its name in the given folder, checks its checksums and returns its name.
//
// It deletes everything else in the given folder, except lost+found. If the backup is there already, nothing is fetched. The folder of the backup has the
// suffix .part until all files are right and on the disk; a call that finds it goes on where the last one ended. If the checksums are wrong, it is deleted.
func (b *Bucket) Fetch(ctx context.Context, name, folder string) (string, error) {
	if _, ok := parseName(name); ok && verify(ctx, name, filePaths(filepath.Join(folder, name))) == nil {
		return name, nil
	}
	remote, err := b.list(ctx)
	if err != nil {
		return "", err
	}
	chosen, err := b.choose(remote.complete(), name)
	if err != nil {
		return "", err
	}
	if name == "" && verify(ctx, chosen, filePaths(filepath.Join(folder, chosen))) == nil {
		return chosen, nil
	}
	if err := b.fetch(ctx, chosen, folder); err != nil {
		return "", err
	}
	b.print("fetched the backup %s", chosen)
	return chosen, nil
}

// choose returns the backup of a name, or the newest for "". Names has the oldest first.
func (b *Bucket) choose(names []string, name string) (string, error) {
	switch {
	case len(names) == 0:
		return "", fmt.Errorf("there is no backup in %s", b.location(""))
	case name == "":
		return names[len(names)-1], nil
	case !slices.Contains(names, name):
		return "", fmt.Errorf("there is no backup %s in %s; there are: %s", name, b.location(""), strings.Join(names, " "))
	}
	return name, nil
}

// fetch fetches a backup that is in the bucket.
func (b *Bucket) fetch(ctx context.Context, name, folder string) error {
	part := filepath.Join(folder, name+".part")
	objects := make(map[string]minio.ObjectInfo)
	paths := make(map[string]string)
	var partial []string
	for _, file := range allFiles() {
		object, err := b.client.StatObject(ctx, b.name, b.key(name, file), minio.StatObjectOptions{})
		if err != nil {
			return b.fail("fetch", b.key(name, file), err)
		}
		objects[file] = object
		partial = append(partial, partialName(file, object.ETag))
		paths[file] = filepath.Join(part, partialName(file, object.ETag))
	}
	if err := deleteOthers(folder, filepath.Base(part), "lost+found"); err != nil {
		return err
	}
	if err := os.MkdirAll(part, 0o700); err != nil {
		return err
	}
	if err := deleteOthers(part, partial...); err != nil {
		return err
	}
	for _, file := range allFiles() {
		if err := b.download(ctx, objects[file], paths[file], name+"/"+file); err != nil {
			return err
		}
	}
	err := verify(ctx, name, paths)
	if _, damaged := errors.AsType[*damagedError](err); damaged {
		return errors.Join(err, os.RemoveAll(part))
	}
	if err != nil {
		return err
	}
	return publish(part, filepath.Join(folder, name), paths)
}

// partialName returns the name of a file that is being fetched. It depends on the ETag, so that parts of different objects are not mixed.
func partialName(file, etag string) string {
	sum := sha256.Sum256([]byte(etag))
	return file + "-" + hex.EncodeToString(sum[:8])
}

// deleteOthers deletes what a folder has besides some names.
func deleteOthers(folder string, keep ...string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if slices.Contains(keep, entry.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// publish gives the files and the folder of a backup their names. The files are on the disk already.
func publish(part, folder string, paths map[string]string) error {
	for file, path := range paths {
		if err := os.Rename(path, filepath.Join(part, file)); err != nil {
			return err
		}
	}
	if err := syncFolder(part); err != nil {
		return err
	}
	if err := os.Rename(part, folder); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(folder))
}

// download fetches what a file lacks of an object, and syncs the file.
func (b *Bucket) download(ctx context.Context, object minio.ObjectInfo, path, name string) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	about, err := file.Stat()
	if err != nil {
		return err
	}
	done := about.Size()
	if done > object.Size { // A crash of the machine may damage a file.
		if err := file.Truncate(0); err != nil {
			return err
		}
		done = 0
	}
	progress := b.newProgress("fetched", name, object.Size)
	for failures := 0; done != object.Size; {
		received, err := b.receive(ctx, object, done, &countingWriter{file, done, progress})
		done += received
		switch {
		case err == nil:
			continue
		case received >= 1<<20:
			failures = 0
		default:
			failures++
		}
		if !errors.Is(err, errInterrupted) || failures == b.limits.attempts {
			return b.fail("fetch", object.Key, err)
		}
	}
	return file.Sync()
}

// errInterrupted reports that a server has begun to send an object, and has not gone on.
var errInterrupted = errors.New("the transfer was interrupted")

// receive fetches an object from an offset on. The client retries requests that fail before the server sends the object.
func (b *Bucket) receive(ctx context.Context, object minio.ObjectInfo, offset int64, to io.Writer) (int64, error) {
	var options minio.GetObjectOptions
	if err := options.SetMatchETag(object.ETag); err != nil {
		return 0, err
	}
	if offset > 0 {
		if err := options.SetRange(offset, object.Size-1); err != nil {
			return 0, err
		}
	}
	body, answer, _, err := b.client.GetObject(ctx, b.name, object.Key, options)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	if answer.Size != object.Size-offset {
		return 0, fmt.Errorf("the server offered %d bytes instead of %d", answer.Size, object.Size-offset)
	}
	received, err := io.Copy(to, body)
	switch {
	case ctx.Err() != nil:
		return received, ctx.Err()
	case err != nil && !isLocal(err):
		return received, fmt.Errorf("%w: %w", errInterrupted, err)
	}
	return received, err
}

// countingWriter reports the progress of a file.
type countingWriter struct {
	io.Writer

	done     int64
	progress *progress
}

func (w *countingWriter) Write(data []byte) (int, error) {
	n, err := w.Writer.Write(data)
	w.done += int64(n)
	w.progress.update(w.done)
	return n, err
}
