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

// digestPrefix is the prefix of a key pattern that matches no real key: the digest of an access string.
const (
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

// patterns returns the key patterns of a user as they were sent.
func patterns(user *types.User) redis.Patterns {
	var found redis.Patterns
	for word := range strings.FieldsSeq(aws.ToString(user.AccessString)) {
		if word = strings.TrimPrefix(word, "%RW"); strings.HasPrefix(word, "~") && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}

// grantOf returns the access of an owner's user. AWS rewrites access strings, so another pattern contains a digest of the string that was
// sent. The digest shows later whether the access is still the desired one.
func grantOf(access redis.Access, owner credential.Owner) granted {
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
