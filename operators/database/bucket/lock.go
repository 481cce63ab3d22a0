package bucket

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock takes the lock file that backup.sh holds while it makes and deletes backups. It waits until the context ends, and at most for the time of the limits.
// The caller calls unlock.
func (b *Bucket) lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the backups: %w", err)
	}
	unlock = func() { _ = file.Close() } // Closing the only descriptor releases the lock.
	ctx, cancel := context.WithTimeoutCause(ctx, b.limits.lockWait, fmt.Errorf("a backup has been running for %s", b.limits.lockWait))
	defer cancel()
	poll := time.NewTicker(b.limits.lockPoll)
	defer poll.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			unlock()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			unlock()
			return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
		case <-poll.C:
		}
	}
}
