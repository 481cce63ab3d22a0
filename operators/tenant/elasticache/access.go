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

// Profile is the set of commands of a user, as in package redis.
type Profile = redis.Profile

// Access is the set of rights of a user, as in package redis. It requires Redis 7 or Valkey, which support rules for subcommands.
type Access = redis.Access

// The profiles.
const (
	// ReadWrite allows all commands on keys and channels, and scripts with Access.Scripting.
	ReadWrite = redis.ReadWrite
	// ReadOnly allows reading keys and subscribing to channels.
	ReadOnly = redis.ReadOnly
)

// Prefixes of key patterns that match no real key: ownership marks, and the digest of an access string.
const (
	markPrefix   = "~einmal.owner:"
	digestPrefix = "~einmal.access:"
	digestLength = 20
)

// granted is an access string in the form in which it is sent.
type granted struct {
	keys, channels, commands []string
	// given are the patterns that name the credential of the user. They are not part of the access, because a rotation changes them.
	given []string
}

// keeps returns the access string with the patterns that name the credential of the user.
func (g granted) keeps(given ...string) granted {
	g.given = given
	return g
}

// givenPattern returns the key pattern that names a record.
func givenPattern(owner credential.Owner, record credential.Record) string {
	given := credential.GivenOf(record)
	return names.CacheGiven(owner.String(), given.Generation, given.Created)
}

// kept returns the patterns of a user that name its credential.
func kept(user *types.User) []string {
	var found []string
	for word := range strings.FieldsSeq(aws.ToString(user.AccessString)) {
		if word = strings.TrimPrefix(word, "%RW"); names.IsCacheGiven(word) && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}

// givenTo returns the credential that the access string of a user names, or zero.
func givenTo(user *types.User, owner credential.Owner) credential.Given {
	for _, pattern := range kept(user) {
		if generation, created, ok := names.ParseCacheGiven(owner.String(), pattern); ok {
			return credential.Given{Username: aws.ToString(user.UserId), Generation: generation, Created: created}
		}
	}
	return credential.Given{}
}

// grantOf returns the access of an owner's user. AWS rewrites access strings, so another pattern contains a digest of the string that was
// sent. The digest shows later whether the access is still the desired one.
func grantOf(access Access, owner credential.Owner) granted {
	made := granted{
		keys:     []string{"~" + access.Prefix + "*", names.CacheMark(owner.String())},
		channels: []string{"&" + access.Prefix + "*"}, commands: access.Commands(),
	}
	sum := sha256.Sum256([]byte(made.String()))
	made.keys = append(made.keys, digestPrefix+strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:digestLength])
	return made
}

// String returns the access string that is sent. AWS replaces the whole access of the user with it.
func (g granted) String() string {
	return strings.Join(slices.Concat([]string{"on"}, g.keys, g.given, g.channels, g.commands), " ")
}

// is reports whether a user has this access, judging by what AWS returns: exactly these keys, one of which contains the digest of the whole
// string, and no other channels. The way AWS writes command rules is not reliable.
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

// whose returns the ownership of a user: Present for the owner, Foreign or Unmarked.
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
