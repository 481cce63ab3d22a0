package handler

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"
)

// The usual back-off of plain errors: it doubles from the first to the longest, and each is shifted by up to a tenth so
// that objects which failed together do not come back together.
const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
	jitterShare    = 10
)

// Backoff is the time to wait after this attempt has failed, for the object with this uid. The jitter follows from
// object, handler and attempt alone.
func (r Run) Backoff(uid string) time.Duration { return r.Limits.backoff(uid, r.ID, r.Attempt) }

func (l Limits) backoff(uid, id string, attempt int) time.Duration {
	delay, longest := l.FirstBackoff, l.LongestBackoff
	if delay == 0 {
		delay, longest = firstBackoff, longestBackoff
	}
	for n := 1; n < attempt && delay < longest; n++ {
		if delay > longest/2 {
			delay = longest
		} else {
			delay *= 2
		}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid + "/" + id + "/" + strconv.Itoa(attempt)))
	return shifted(min(delay, longest), hash.Sum32()>>16)
}

// longestWait is the longest time that an attempt which has failed is waited for, unless the handler names another.
func (l Limits) longestWait() time.Duration {
	longest := l.LongestBackoff
	if longest == 0 {
		longest = longestBackoff
	}
	return longest + min(longest/jitterShare, math.MaxInt64-longest)
}

// shifted moves a delay by up to a tenth, by a share of shares.
func shifted(delay time.Duration, share uint32) time.Duration {
	const shares = 1 << 16
	spread := delay / jitterShare
	whole, rest := 2*spread/shares, 2*spread%shares // The product with a long delay would be too large.
	return delay - spread + whole*time.Duration(share) + rest*time.Duration(share)/shares
}
