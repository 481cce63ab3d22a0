package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"
)

// maxParts is the largest number of parts that S3 accepts for a file.
const maxParts = 10000

// Upload copies every backup of the folder that is to be kept and that the bucket lacks, the newest first. Then it deletes from the bucket those that need
// not be kept: see Retention, which applies to the backups of both places. It also deletes what earlier calls have left incomplete, after a day.
//
// It holds the file lock of the folder, so that backup.sh deletes nothing meanwhile, and waits for it for up to an hour. A damaged backup is not copied, but
// the others are. The errors are joined. Nothing is deleted after an error.
func (b *Bucket) Upload(ctx context.Context, folder string, keep Retention, now time.Time) error {
	if err := keep.validate(); err != nil {
		return err
	}
	unlock, err := b.lock(ctx, filepath.Join(folder, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	local, err := localBackups(folder)
	if err != nil {
		return err
	}
	remote, err := b.list(ctx)
	if err != nil {
		return err
	}
	wanted := keep.wanted(slices.Concat(local, remote.complete()), now)
	missing := slices.DeleteFunc(slices.Clone(local), func(name string) bool { return !wanted[name] || remote[name].complete() })
	if err := b.sendAll(ctx, folder, missing); err != nil {
		return err
	}
	if err := b.deleteUnwanted(ctx, remote, wanted, now); err != nil {
		return err
	}
	return b.abortUploads(ctx, now)
}

// sendAll copies backups, the newest first. An error of the bucket would occur for the other backups too, so it ends the copying.
func (b *Bucket) sendAll(ctx context.Context, folder string, names []string) error {
	var failures []error
	for _, name := range slices.Backward(names) {
		err := b.send(ctx, filepath.Join(folder, name), name)
		if err == nil {
			b.print("sent the backup %s", name)
			continue
		}
		failures = append(failures, err)
		if !isLocal(err) {
			break
		}
	}
	return errors.Join(failures...)
}

// send copies a backup from its folder. Its checksums come last: with them, it is complete.
func (b *Bucket) send(ctx context.Context, folder, name string) error {
	text, err := os.ReadFile(filepath.Join(folder, checksumFile))
	if err != nil {
		return fmt.Errorf("read the checksums of the backup %s: %w", name, err)
	}
	sums, err := parseChecksums(name, string(text))
	if err != nil {
		return err
	}
	for _, file := range contents() {
		if err := b.sendFile(ctx, filepath.Join(folder, file), name, sums[file]); err != nil {
			return err
		}
	}
	return b.put(ctx, b.key(name, checksumFile), bytes.NewReader(text), int64(len(text)))
}

// sendFile copies a file of a backup that has the checksum sum. A file with another one does not get into the bucket.
func (b *Bucket) sendFile(ctx context.Context, path, backup, sum string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the backup %s: %w", backup, err)
	}
	defer func() { _ = file.Close() }()
	about, err := file.Stat()
	if err != nil {
		return fmt.Errorf("read the backup %s: %w", backup, err)
	}
	name := filepath.Base(path)
	reader := &checkedReader{
		source:   file,
		hash:     sha256.New(),
		size:     about.Size(),
		sum:      sum,
		damaged:  &damagedError{backup, "the checksum of " + name + " is another one"},
		partSize: b.partSize(about.Size()),
		progress: b.newProgress("sent", backup+"/"+name, about.Size()),
	}
	if about.Size() == 0 && !reader.matches() { // The client does not read an empty file.
		return reader.damaged
	}
	return b.put(ctx, b.key(backup, name), reader, about.Size())
}

// put makes an object of size bytes and checks its size in the bucket.
//
// The client holds a part in memory and sends it again after an error, so the source is read once. The server checks each part with its MD5. The client would
// also sign each chunk of the body over http, which some servers do not support for parts.
func (b *Bucket) put(ctx context.Context, key string, source io.Reader, size int64) error {
	_, err := b.client.Client.PutObject(ctx, b.name, key, struct{ io.Reader }{source}, size, minio.PutObjectOptions{
		PartSize:             uint64(b.partSize(size)), //nolint:gosec // A size is not negative.
		SendContentMd5:       true,
		DisableContentSha256: true,
	})
	if err != nil {
		return b.fail("send", key, err)
	}
	object, err := b.client.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err != nil {
		return b.fail("check", key, err)
	}
	if object.Size == size {
		return nil
	}
	// The object could make the backup look complete.
	_ = b.client.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})
	return b.fail("check", key, fmt.Errorf("the object has %d bytes instead of %d", object.Size, size))
}

// partSize returns the size of a part of a file, so that there are not too many parts.
func (b *Bucket) partSize(size int64) int64 {
	return max(b.limits.partSize, (size+maxParts-1)/maxParts)
}

// checkedReader reads a file once. It withholds the end of a file that has another checksum, so that the client aborts the upload.
type checkedReader struct {
	source   io.Reader
	hash     hash.Hash
	size     int64 // bytes of the file
	sum      string
	damaged  error // for a file with another checksum
	partSize int64
	progress *progress
	done     int64
}

func (r *checkedReader) Read(data []byte) (int, error) {
	r.progress.update(r.done / r.partSize * r.partSize) // The client reads a part when those before have been sent.
	n, err := r.source.Read(data)
	r.hash.Write(data[:n])
	r.done += int64(n)
	if (r.done >= r.size || err == io.EOF) && !r.matches() {
		return 0, r.damaged
	}
	return n, err
}

// matches reports whether what was read has the checksum.
func (r *checkedReader) matches() bool { return hex.EncodeToString(r.hash.Sum(nil)) == r.sum }
