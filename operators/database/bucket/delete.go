package bucket

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"
)

// deleteUnwanted deletes the backups of a listing that are complete and not wanted, and the remains of backups that began more than a day ago. What is wanted
// in the folder is complete in the bucket now, so remains can never become complete.
func (b *Bucket) deleteUnwanted(ctx context.Context, remote listing, wanted map[string]bool, now time.Time) error {
	for _, name := range slices.Sorted(maps.Keys(remote)) {
		begun, _ := parseName(name)
		files := remote[name]
		remains := !files[checksumFile] && begun.Before(now.Add(-day))
		if wanted[name] || !files.complete() && !remains {
			continue
		}
		if err := b.deleteBackup(ctx, name, files); err != nil {
			return err
		}
	}
	return nil
}

// deleteBackup deletes the checksums first, so that a backup that is not deleted wholly is not complete.
func (b *Bucket) deleteBackup(ctx context.Context, name string, files fileSet) error {
	for _, file := range slices.Backward(allFiles()) {
		if !files[file] {
			continue
		}
		key := b.key(name, file)
		if err := b.client.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{}); err != nil {
			return b.fail("delete", key, err)
		}
	}
	if files.complete() {
		b.print("deleted the backup %s", name)
	} else {
		b.print("deleted the incomplete backup %s", name)
	}
	return nil
}

// abortUploads aborts the uploads of large files that were begun more than a day ago. A killed process leaves them, and their parts cost money.
func (b *Bucket) abortUploads(ctx context.Context, now time.Time) error {
	var uploads []minio.ObjectMultipartInfo
	var failure error
	for upload := range b.client.ListIncompleteUploads(ctx, b.name, b.root, true) { // The channel must be emptied.
		if upload.Err != nil {
			failure = upload.Err
			continue
		}
		if _, _, ok := b.parseKey(upload.Key); ok && upload.Initiated.Before(now.Add(-day)) {
			uploads = append(uploads, upload)
		}
	}
	// A server without incomplete uploads may answer NoSuchUpload.
	if failure != nil && !hasCode(failure, "NotImplemented", "NoSuchUpload") {
		return b.fail("list incomplete uploads in", "", failure)
	}
	for _, upload := range uploads {
		if err := b.client.AbortMultipartUpload(ctx, b.name, upload.Key, upload.UploadID); err != nil && !hasCode(err, "NoSuchUpload") {
			return b.fail("abort the upload of", upload.Key, err)
		}
		b.print("aborted an incomplete upload of %s", b.location(upload.Key))
	}
	return nil
}
