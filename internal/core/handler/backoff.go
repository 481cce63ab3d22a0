package handler

import (
	"hash/fnv"
	"math"
	"strconv"
	"time"
)

// The default backoff after plain errors doubles from firstBackoff to longestBackoff. Each delay varies by up to a tenth, so that
// objects that failed together are not retried together.
const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
	jitterShare    = 10
)

// Backoff returns the delay after this attempt has failed, for the object with this uid. The jitter depends only on the object, the
// handler and the attempt.
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

// longestWait returns the longest delay after a failed attempt, unless the handler names another one.
func (l Limits) longestWait() time.Duration {
	longest := l.LongestBackoff
	if longest == 0 {
		longest = longestBackoff
	}
	return longest + min(longest/jitterShare, math.MaxInt64-longest)
}

// shifted changes a delay by up to a tenth in either direction. The share, of shares, says by how much.
func shifted(delay time.Duration, share uint32) time.Duration {
	const shares = 1 << 16
	spread := delay / jitterShare
	whole, rest := 2*spread/shares, 2*spread%shares // Multiplying first would overflow for a long delay.
	return delay - spread + whole*time.Duration(share) + rest*time.Duration(share)/shares
}
