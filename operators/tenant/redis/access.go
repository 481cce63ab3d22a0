package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/einmal-operators/einmal/credential"
)

// Profile is what a user may do with its keys.
type Profile string

// The profiles.
const (
	// ReadWrite may do all that is about keys and channels, and about scripts with Access.Scripting.
	ReadWrite Profile = "readWrite"
	// ReadOnly may read keys and listen to channels.
	ReadOnly Profile = "readOnly"
)

// Access is what a user may do, and with which keys and channels.
type Access struct {
	Profile Profile
	// Prefix is what all keys and channels of the user begin with. It holds nothing that a pattern understands (names.CheckKeyPrefix).
	Prefix string
	// Scripting lets a ReadWrite user run scripts and functions. The default is false: a server runs one script at a time and nothing beside
	// it, so a script without an end stops it for all tenants.
	Scripting bool
}

// Check tells what is wrong with an access.
func (a Access) Check() error {
	if a.Profile != ReadWrite && a.Profile != ReadOnly {
		return fmt.Errorf("the profile of the cache is %q: choose %s or %s", a.Profile, ReadWrite, ReadOnly)
	}
	if a.Prefix == "" {
		return fmt.Errorf("the prefix of keys of the cache is empty, which is every key: give it one")
	}
	if strings.ContainsFunc(a.Prefix, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`*?[]^\"'`, r) }) {
		return fmt.Errorf("the prefix of keys of the cache is %q: leave out what a pattern understands, spaces and quotes", a.Prefix)
	}
	return nil
}

// Commands are the rules for commands, of which the later ones prevail. @admin and @dangerous hold what is about the server and all keys
// (tenant-and-database.md §2, Details). The others that are taken away tell the names of other tenants' keys and channels, or change the scripts and functions that
// all have in common. Of CLUSTER it is said what is allowed, which is what clients of a cluster need: newer servers have more that tells of
// other tenants' keys (CLUSTER SLOT-STATS: Valkey 8.0), and older ones do not take a rule for what they do not know.
func (a Access) Commands() []string {
	others := []string{
		"-@admin", "-@dangerous", "-scan", "-randomkey", "-dbsize", "-client|tracking",
		"-pubsub|channels", "-pubsub|shardchannels", "-pubsub|numpat", "-function", "-script|flush", "-script|kill",
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
	return []string{"~" + a.Prefix + "*", markOf(owner)}
}

func (a Access) channels() []string { return []string{"&" + a.Prefix + "*"} }

// rules are what makes the access of a user this one, whatever it was. They leave its passwords alone. The given are the patterns that say
// which credential it has.
func (a Access) rules(owner credential.Owner, is *account, given []string) []string {
	rules := slices.Concat([]string{"resetkeys"}, a.keys(owner), given, []string{"resetchannels"}, a.channels(), a.Commands())
	if is != nil && is.selectors > 0 {
		rules = append(rules, "clearselectors")
	}
	return rules
}

// grants tells whether a user has an access already, and no more.
func (n *node) grants(ctx context.Context, is *account, access Access, owner credential.Owner) (bool, error) {
	if is.selectors > 0 || !sameWords(is.keys, append(access.keys(owner), is.kept()...)) || !sameWords(is.channels, access.channels()) {
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

// compares tells whether two lists of rules for commands allow the same. A server describes rules in words and an order of its own,
// which differ from start to start (Redis 7.0), so it is asked for what its categories hold.
func (n *node) compares(ctx context.Context, one, other string) (bool, error) {
	known, err := n.catalog(ctx)
	if err != nil {
		return false, err
	}
	return maps.Equal(known.allowed(one), known.allowed(other)), nil
}

// catalog asks a server what its categories of commands hold.
func (n *node) catalog(ctx context.Context) (catalog, error) {
	const doing = "list the categories of commands"
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

// Scripting reports whether a user of the owner may run scripts on any node. It is false if there is no such user.
func (u Users) Scripting(ctx context.Context, owner credential.Owner, username string) (bool, error) {
	found, err := u.accounts(ctx, username)
	if err != nil {
		return false, err
	}
	for n, is := range found {
		if is.whose(owner) != credential.Present {
			continue
		}
		known, err := n.catalog(ctx)
		if err != nil || known.allowed(is.commands)["eval"] {
			return err == nil, err
		}
	}
	return false, nil
}

// catalog has the commands of each category of a server. Commands that have subcommands are in it with them: "config|get".
type catalog map[string][]string

// allowed are the commands that a list of rules allows, of which the later ones prevail.
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

// meant are the commands that a rule is about. One that has subcommands means all of these.
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

// alone leaves out the commands that have subcommands, since those are what is allowed.
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
