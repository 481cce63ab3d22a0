package redis_test

import (
	"testing"

	"github.com/einmal-operators/einmal/credential"
)

// A session may have been opened with the password that is taken away, so wherever one is, the sessions end if that is wanted, and only then.
func TestSessionsEndWhereverAPasswordIsTakenAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range map[string]struct {
		before, open string
		change       func(users credential.Rotator) error
		ends         bool
	}{
		"replaced in place": {">first", "first", func(users credential.Rotator) error {
			return users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("second")})
		}, true},
		"another password, set back": {">other", "other", func(users credential.Rotator) error {
			return users.Set(t.Context(), owner(), credential.Assignment{Record: user()})
		}, true},
		"no password was needed": {"nopass", "anything", func(users credential.Rotator) error {
			return users.Set(t.Context(), owner(), credential.Assignment{Record: user()})
		}, true},
		"the older one of two, for a third": {">first >second", "first", func(users credential.Rotator) error {
			return users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("third"), Keep: true, Previous: withPassword("second")})
		}, true},
		"retired": {">first >second", "first", func(users credential.Rotator) error {
			return users.Retire(t.Context(), owner(), withPassword("second"), nil)
		}, true},
		"one more password": {">first", "first", func(users credential.Rotator) error {
			return users.Set(t.Context(), owner(), credential.Assignment{Record: withPassword("second"), Keep: true, Previous: user()})
		}, false},
		"the same password": {">first", "first", func(users credential.Rotator) error {
			return users.Set(t.Context(), owner(), credential.Assignment{Record: user()})
		}, false},
	} {
		for _, terminate := range []bool{true, false} {
			f.users.Terminate = terminate
			f.as(t, f.servers[0], "ACL", "DELUSER", user().Username)
			f.as(t, f.servers[1], "ACL", "DELUSER", user().Username)
			f.plant(t, f.servers[0], ours()+"+ping "+test.before)
			client := f.servers[0].Client(user().Username, test.open)
			session := client.Conn()
			must(t, session.Ping(t.Context()).Err())
			must(t, test.change(f.users))
			if ended := session.Ping(t.Context()).Err() != nil; ended != (test.ends && terminate) {
				t.Errorf("%s, Terminate %t: the session has ended: %t", name, terminate, ended)
			}
			_ = client.Close()
		}
	}
}
