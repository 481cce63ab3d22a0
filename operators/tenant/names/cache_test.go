package names_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// A mark outlives the object that it is for, so its form stays. It holds no character that a pattern
// would understand, whatever the owner is called.
func TestCacheMarksStay(t *testing.T) {
	for owner, want := range map[string]string{
		"tenants.einmal.dev@one//acme/web": "~einmal.owner:svn2iqhok2yz2pjz5qfz",
		"tenants.einmal.dev@one//* ~":      "~einmal.owner:kf47ehyrwygf4e44radd",
	} {
		if got := names.CacheMark(owner); got != want {
			t.Errorf("the mark of %q is %q, want %q", owner, got, want)
		}
	}
}

// The same is true of the pattern that names the generation of a credential. Two owners share none.
func TestGivenPatternsStay(t *testing.T) {
	const owner, want = "tenants.einmal.dev@one//acme/web", "~einmal.given:svn2iqhok2yz2pjz5qfz:2:1793606400"
	created := time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	if got := names.CacheGiven(owner, 2, created); got != want || !names.IsCacheGiven(got) {
		t.Errorf("the pattern is %q, want %q", got, want)
	}
	if generation, at, ok := names.ParseCacheGiven(owner, want); generation != 2 || !at.Equal(created) || !ok {
		t.Errorf("the pattern is read as generation %d of %s, %t", generation, at, ok)
	}
	if _, _, ok := names.ParseCacheGiven("another", want); ok {
		t.Error("two owners share a pattern")
	}
}
