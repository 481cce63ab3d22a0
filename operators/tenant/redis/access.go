package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// Profile is the set of commands of a user.
type Profile string

// The profiles.
const (
	// ReadWrite allows all commands on keys and channels, and scripts with Access.Scripting.
	ReadWrite Profile = "readWrite"
	// ReadOnly allows reading keys and subscribing to channels.
	ReadOnly Profile = "readOnly"
)

// Access is the set of rights of a user: commands, keys and channels.
type Access struct {
	Profile Profile
	// Prefix is the prefix of all keys and channels of the user. It contains no pattern characters.
	Prefix string
	// Scripting allows a ReadWrite user to run scripts and functions. The default is false: a server runs one script at a time and nothing
	// else meanwhile, so a script that does not end blocks it for all tenants.
	Scripting bool
}

// Check returns an error if the access is invalid.
func (a Access) Check() error {
	if a.Profile != ReadWrite && a.Profile != ReadOnly {
		return fmt.Errorf("invalid cache profile %q: must be %s or %s", a.Profile, ReadWrite, ReadOnly)
	}
	if a.Prefix == "" {
		return fmt.Errorf("the key prefix of the cache is empty: must be set, because an empty prefix matches every key")
	}
	if strings.ContainsFunc(a.Prefix, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`*?[]^\"'`, r) }) {
		return fmt.Errorf("invalid key prefix %q of the cache: must not contain pattern characters, spaces or quotes", a.Prefix)
	}
	return nil
}

// Commands returns the command rules; later rules override earlier ones. @admin and @dangerous contain commands on the server and on all
// keys. Further commands are removed because they reveal the names, the number or the size of other tenants' keys and channels, or change the
// scripts and functions that all tenants share. Of MEMORY only USAGE is allowed: it is about one key, which the user must be able to read. For
// CLUSTER the rules list what is allowed, which is what cluster clients need: newer servers have more
// subcommands that reveal keys of other tenants (CLUSTER SLOT-STATS: Valkey 8.0), and older ones reject rules for subcommands that they do
// not know.
func (a Access) Commands() []string {
	others := []string{
		"-@admin", "-@dangerous", "-scan", "-randomkey", "-dbsize", "-client|tracking",
		"-pubsub", "-memory", "+memory|usage", "-function", "-script|flush", "-script|kill",
		"-cluster", "+cluster|info", "+cluster|keyslot", "+cluster|myid", "+cluster|nodes", "+cluster|shards", "+cluster|slots",
	}
	if a.Profile == ReadOnly {
		return append([]string{"-@all", "+@read", "+@connection", "+@transaction", "+@pubsub", "-publish", "-spublish", "-@write"}, others...)
	}
	if a.Scripting {
		return append([]string{"+@all"}, others...)
	}
	return append([]string{"+@all", "-@scripting"}, others...)
}

func (a Access) keys(owner credential.Owner) []string {
	return []string{"~" + a.Prefix + "*", names.CacheMark(owner.String())}
}

func (a Access) channels() []string { return []string{"&" + a.Prefix + "*"} }

// rules returns the ACL rules that replace the access of a user with this one. They do not change its passwords. given are the patterns
// that name its credential.
func (a Access) rules(owner credential.Owner, is *account, given []string) []string {
	rules := slices.Concat([]string{"resetkeys"}, a.keys(owner), given, []string{"resetchannels"}, a.channels(), a.Commands())
	if is != nil && is.selectors > 0 {
		rules = append(rules, "clearselectors")
	}
	return rules
}

// grants reports whether a user has exactly an access.
func (n *node) grants(ctx context.Context, is *account, access Access, owner credential.Owner) (bool, error) {
	if is.selectors > 0 || !sameWords(is.keys, append(access.keys(owner), is.keys.Naming()...)) || !sameWords(is.channels, access.channels()) {
		return false, nil
	}
	asked := strings.Join(access.Commands(), " ")
	pair := [2]string{asked, is.commands}
	n.mu.Lock()
	known := n.same[pair]
	n.mu.Unlock()
	if known || asked == is.commands {
		return true, nil
	}
	known, err := n.compares(ctx, asked, is.commands)
	if known {
		n.mu.Lock()
		n.same[pair] = true
		n.mu.Unlock()
	}
	return known, err
}

func sameWords(one, other []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(other)))
}

// compares reports whether two lists of command rules allow the same commands. A server reports rules in its own words and order, which
// differ between starts (Redis 7.0), so the rules are expanded with the server's categories.
func (n *node) compares(ctx context.Context, one, other string) (bool, error) {
	known, err := n.catalog(ctx)
	if err != nil {
		return false, err
	}
	return maps.Equal(known.allowed(one), known.allowed(other)), nil
}

// catalog reads the command categories of a server.
func (n *node) catalog(ctx context.Context) (catalog, error) {
	const doing = "list command categories"
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	categories, err := n.client.ACLCat(ctx).Result()
	if err != nil {
		return nil, n.fault(doing, err)
	}
	answers, err := n.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, category := range categories {
			pipe.ACLCatArgs(ctx, &goredis.ACLCatArgs{Category: category})
		}
		return nil
	})
	if err != nil {
		return nil, n.fault(doing, err)
	}
	known := catalog{}
	for i, answer := range answers {
		if list, is := answer.(*goredis.StringSliceCmd); is {
			known[categories[i]] = list.Val()
		}
	}
	return known, nil
}

// catalog maps categories to their commands, including subcommands as "config|get".
type catalog map[string][]string

// allowed returns the commands that a list of rules allows. Later rules override earlier ones.
func (c catalog) allowed(rules string) map[string]bool {
	allowed := map[string]bool{}
	for rule := range strings.FieldsSeq(rules) {
		for _, command := range c.meant(rule[1:]) {
			if rule[0] == '+' {
				allowed[command] = true
			} else {
				delete(allowed, command)
			}
		}
	}
	return allowed
}

// meant returns the commands that a rule matches. A command with subcommands matches all of them.
func (c catalog) meant(rule string) []string {
	var of []string
	category, isCategory := strings.CutPrefix(rule, "@")
	for name, commands := range c {
		if isCategory && (category == "all" || category == name) {
			of = append(of, commands...)
		}
	}
	if isCategory {
		return c.alone(of)
	}
	for _, commands := range c {
		of = append(of, slices.DeleteFunc(slices.Clone(commands), func(command string) bool { return !strings.HasPrefix(command, rule+"|") })...)
	}
	if len(of) == 0 {
		return []string{rule}
	}
	return of
}

// alone removes commands that have subcommands, because the subcommands are what is allowed.
func (c catalog) alone(commands []string) []string {
	parents := map[string]bool{}
	for _, listed := range c {
		for _, command := range listed {
			parent, _, has := strings.Cut(command, "|")
			parents[parent] = parents[parent] || has
		}
	}
	return slices.DeleteFunc(commands, func(command string) bool { return parents[command] })
}
