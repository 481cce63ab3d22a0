package names

import "crypto/sha256"

// cacheMarkLength is the number of characters that tell owners apart in a CacheMark: 100 bits.
const cacheMarkLength = 20

// CacheMark is the mark of an owner, a credential.Owner as text, on a user of a cache: the pattern of a key that nobody has, among the
// patterns of the user's access string. Users of caches have no place for a comment, and the pattern gives access to nothing. It is a
// hash, as an owner may have characters that a pattern does not take.
func CacheMark(owner string) string {
	digest := sha256.Sum256([]byte(owner))
	return "~einmal.owner:" + base32Lower(digest[:])[:cacheMarkLength]
}
