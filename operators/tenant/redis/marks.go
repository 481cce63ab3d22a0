package redis

import (
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// Patterns are the key patterns of a user, including the leading ~. Some match no real key: they name the owner and the credential.
type Patterns []string

// Whose returns the ownership of a user: Present for the owner, Foreign or Unmarked.
func (p Patterns) Whose(owner credential.Owner) credential.State {
	ours := names.CacheMark(owner.String())
	sign, _, _ := strings.Cut(ours, ":")
	switch {
	case slices.ContainsFunc(p, func(pattern string) bool { return strings.HasPrefix(pattern, sign+":") && pattern != ours }):
		return credential.Foreign
	case slices.Contains(p, ours):
		return credential.Present
	}
	return credential.Unmarked
}

// Given returns the credential that the patterns of the owner's user name, or zero.
func (p Patterns) Given(owner credential.Owner, username string) credential.Given {
	if p.Whose(owner) != credential.Present {
		return credential.Given{}
	}
	for _, pattern := range p {
		if generation, created, ok := names.ParseCacheGiven(owner.String(), pattern); ok {
			return credential.Given{Username: username, Generation: generation, Created: created}
		}
	}
	return credential.Given{}
}

// Naming returns the patterns that name the given credential.
func (p Patterns) Naming() []string {
	return slices.DeleteFunc(slices.Clone(p), func(pattern string) bool { return !names.IsCacheGiven(pattern) })
}

// GivenPattern returns the pattern that names a record.
func GivenPattern(owner credential.Owner, record credential.Record) string {
	given := credential.GivenOf(record)
	return names.CacheGiven(owner.String(), given.Generation, given.Created)
}
