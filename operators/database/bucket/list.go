package bucket

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
)

// listing has the files in the bucket by name of backup. A backup may be incomplete.
type listing map[string]fileSet

// fileSet has the files that a backup has.
type fileSet map[string]bool

// complete returns the names of the complete backups, the oldest first.
func (l listing) complete() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if l[name].complete() {
			names = append(names, name)
		}
	}
	return names
}

func (f fileSet) complete() bool { return len(f) == len(allFiles()) }

// list returns what the bucket has.
func (b *Bucket) list(ctx context.Context) (listing, error) {
	remote := make(listing)
	for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.root, Recursive: true}) {
		if object.Err != nil {
			return nil, b.fail("list", "", object.Err)
		}
		backup, file, ok := b.parseKey(object.Key)
		if !ok {
			continue
		}
		if remote[backup] == nil {
			remote[backup] = make(fileSet)
		}
		remote[backup][file] = true
	}
	if err := ctx.Err(); err != nil { // The iterator may end without an error then.
		return nil, b.fail("list", "", err)
	}
	return remote, nil
}

// parseKey returns the backup and the file of a key, and whether it is the key of a backup here.
func (b *Bucket) parseKey(key string) (backup, file string, ok bool) {
	path, below := strings.CutPrefix(key, b.root)
	backup, file, _ = strings.Cut(path, "/")
	_, isName := parseName(backup)
	return backup, file, below && isName && slices.Contains(allFiles(), file)
}
