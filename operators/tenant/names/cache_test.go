package names_test

import (
	"testing"

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
