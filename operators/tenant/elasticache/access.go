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
type granted struct{ keys, channels, commands []string }

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
	return strings.Join(slices.Concat([]string{"on"}, g.keys, g.channels, g.commands), " ")
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
