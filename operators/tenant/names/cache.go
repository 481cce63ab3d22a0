package names

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cacheMarkLength is the number of hash characters in a CacheMark: 100 bits.
const cacheMarkLength = 20

// CacheMark returns the ownership mark of an owner on a cache user: a key pattern in the access string of the user that matches no real
// key. Cache users have no field for comments, and the pattern gives access to nothing. It contains a hash, because an owner may have
// characters that are not allowed in a pattern. owner is a credential.Owner as text.
func CacheMark(owner string) string {
	return "~einmal.owner:" + cacheOwner(owner)
}

func cacheOwner(owner string) string {
	digest := sha256.Sum256([]byte(owner))
	return base32Lower(digest[:])[:cacheMarkLength]
}

// cacheGiven is the beginning of the pattern of CacheGiven.
const cacheGiven = "~einmal.given:"

// CacheGiven returns a second pattern beside the CacheMark. It names the generation of the credential that a user was last given, and when
// that was generated. It contains the hash of the owner, so that no two users share the key.
func CacheGiven(owner string, generation int, created time.Time) string {
	return fmt.Sprintf("%s%s:%d:%d", cacheGiven, cacheOwner(owner), generation, created.Unix())
}

// IsCacheGiven reports whether a pattern is one of CacheGiven, of any owner.
func IsCacheGiven(pattern string) bool { return strings.HasPrefix(pattern, cacheGiven) }

// ParseCacheGiven parses a pattern of CacheGiven. ok is false if it is not one of the owner.
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
