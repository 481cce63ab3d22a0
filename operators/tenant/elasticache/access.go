package elasticache

import (
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// Profile is what a user may do with its keys, as in a Redis of one's own.
type Profile = redis.Profile

// Access is what a user may do, and with which keys and channels, as in a Redis of one's own. It needs Redis 7 or Valkey, which know rules
// for subcommands.
type Access = redis.Access

// The profiles.
const (
	// ReadWrite may do all that is about keys, channels and scripts.
	ReadWrite = redis.ReadWrite
	// ReadOnly may read keys and listen to channels.
	ReadOnly = redis.ReadOnly
)

// The patterns of keys that nobody has: of any owner's mark, and of the digest of an access string.
const (
	markPrefix   = "~einmal.owner:"
	digestPrefix = "~einmal.access:"
	digestLength = 20
)

// granted is an access string, as it is sent.
type granted struct {
	keys, channels, commands []string
	// given are the patterns that say which credential the user has. They are no part of the access: a rotation changes them.
	given []string
}

// keeps returns an access string that says too which credential the user has.
func (g granted) keeps(given ...string) granted {
	g.given = given
	return g
}

// givenPattern is the pattern for a record.
func givenPattern(owner credential.Owner, record credential.Record) string {
	given := credential.GivenOf(record)
	return names.CacheGiven(owner.String(), given.Generation, given.Created)
}

// kept are the patterns of a user that say which credential it has.
func kept(user *types.User) []string {
	var found []string
	for word := range strings.FieldsSeq(aws.ToString(user.AccessString)) {
		if word = strings.TrimPrefix(word, "%RW"); names.IsCacheGiven(word) && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}

// givenTo is the credential that a user was given last, as its access string says; zero if it does not.
func givenTo(user *types.User, owner credential.Owner) credential.Given {
	for _, pattern := range kept(user) {
		if generation, created, ok := names.ParseCacheGiven(owner.String(), pattern); ok {
			return credential.Given{Username: aws.ToString(user.UserId), Generation: generation, Created: created}
		}
	}
	return credential.Given{}
}

// grantOf is the access of an owner's user. AWS gives access strings back in words of its own, so another pattern carries a digest of what
// was sent: that is what tells later whether it is still what is asked for (tenant-and-database.md §7.15).
func grantOf(access Access, owner credential.Owner) granted {
	made := granted{
		keys:     []string{"~" + access.Prefix + "*", names.CacheMark(owner.String())},
		channels: []string{"&" + access.Prefix + "*"}, commands: access.Commands(),
	}
	sum := sha256.Sum256([]byte(made.String()))
	made.keys = append(made.keys, digestPrefix+strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:digestLength])
	return made
}

// String is what is sent. AWS makes it the whole access of the user, whatever that was.
func (g granted) String() string {
	return strings.Join(slices.Concat([]string{"on"}, g.keys, g.given, g.channels, g.commands), " ")
}

// is tells whether a user has this access, by what AWS gives back: exactly these keys, of which one tells of all the rest, and no other
// channels. How AWS writes rules for commands is not to be relied on.
func (g granted) is(user *types.User) bool {
	var keys []string
	on, more := false, false
	for word := range strings.FieldsSeq(aws.ToString(user.AccessString)) {
		switch {
		case word == "on":
			on = true
		case names.IsCacheGiven(strings.TrimPrefix(word, "%RW")):
		case word[0] == '~' || word[0] == '%' || word == "allkeys":
			keys = append(keys, strings.TrimPrefix(word, "%RW"))
		case word[0] == '&' || word == "allchannels":
			more = more || !slices.Contains(g.channels, word)
		}
	}
	slices.Sort(keys)
	return on && !more && slices.Equal(slices.Compact(keys), slices.Sorted(slices.Values(g.keys)))
}

// whose tells whether a user is the owner's: Present, Foreign or Unmarked.
func whose(user *types.User, owner credential.Owner) credential.State {
	state := credential.Unmarked
	for word := range strings.FieldsSeq(aws.ToString(user.AccessString)) {
		switch word = strings.TrimPrefix(word, "%RW"); {
		case word == names.CacheMark(owner.String()):
			return credential.Present
		case strings.HasPrefix(word, markPrefix):
			state = credential.Foreign
		}
	}
	return state
}
