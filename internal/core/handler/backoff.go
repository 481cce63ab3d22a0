package handler

import (
	"hash/fnv"
	"strconv"
	"time"
)

// The back-off of plain errors: it doubles from the first to the longest, and each is shifted by up to a tenth so that
// objects which failed together do not come back together.
const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
	jitterShare    = 10
)

// Backoff is the time to wait after the attempt with this number (from 1) of one object's handler has failed. The
// jitter follows from the arguments alone.
func Backoff(uid, id string, attempt int) time.Duration {
	delay := firstBackoff
	for n := 1; n < attempt && delay < longestBackoff; n++ {
		delay *= 2
	}
	delay = min(delay, longestBackoff)
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid + "/" + id + "/" + strconv.Itoa(attempt)))
	spread := delay / jitterShare
	return delay - spread + time.Duration(hash.Sum32()>>16)*(2*spread)/(1<<16)
}
