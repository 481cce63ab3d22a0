package names

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cacheMarkLength is the number of characters that tell owners apart in a CacheMark: 100 bits.
const cacheMarkLength = 20

// CacheMark is the mark of an owner, a credential.Owner as text, on a user of a cache: the pattern of a key that nobody has, among the
// patterns of the user's access string. Users of caches have no place for a comment, and the pattern gives access to nothing. It is a
// hash, as an owner may have characters that a pattern does not take.
func CacheMark(owner string) string {
	return "~einmal.owner:" + cacheOwner(owner)
}

func cacheOwner(owner string) string {
	digest := sha256.Sum256([]byte(owner))
	return base32Lower(digest[:])[:cacheMarkLength]
}

// cacheGiven is how the pattern of CacheGiven begins.
const cacheGiven = "~einmal.given:"

// CacheGiven is a second pattern beside the CacheMark: which generation of its credential a user was given last, and when that was generated. It
// has the hash of the owner, so that no two users share the key.
func CacheGiven(owner string, generation int, created time.Time) string {
	return fmt.Sprintf("%s%s:%d:%d", cacheGiven, cacheOwner(owner), generation, created.Unix())
}

// IsCacheGiven reports whether a pattern is one of CacheGiven, of any owner.
func IsCacheGiven(pattern string) bool { return strings.HasPrefix(pattern, cacheGiven) }

// ParseCacheGiven returns what a pattern of CacheGiven says; ok is false if it is not one of the owner.
func ParseCacheGiven(owner, pattern string) (generation int, created time.Time, ok bool) {
	text, ok := strings.CutPrefix(pattern, cacheGiven+cacheOwner(owner)+":")
	number, at, both := strings.Cut(text, ":")
	generation, wrong := strconv.Atoi(number)
	seconds, failed := strconv.ParseInt(at, 10, 64)
	if !ok || !both || wrong != nil || failed != nil {
		return 0, time.Time{}, false
	}
	return generation, time.Unix(seconds, 0).UTC(), true
}
