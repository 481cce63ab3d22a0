package credentialtest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// What a real system refuses, the one in memory refuses too, and it changes nothing then.
func TestUsersRefuseWhatASystemRefuses(t *testing.T) {
	t.Parallel()
	users := &credentialtest.Users{Name: "database", Room: 2}
	system, ctx := credentialtest.Session{Users: users, Grants: "all"}, t.Context()
	ours, theirs := credential.Owner{Operator: "op.example.com", Name: "one"}, credential.Owner{Operator: "op.example.com", Name: "two"}
	of := func(username, password string) credential.Record {
		return credential.Record{Username: username, Password: credential.NewPassword(password)}
	}
	kept := func(username, password string) credential.Assignment {
		return credential.Assignment{Record: of(username, password), Keep: true}
	}
	users.Plant("theirs", theirs, credential.NewPassword("x"))
	users.Plant("unmarked", credential.Owner{}, credential.NewPassword("x"))
	is := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s says %v, want %v", what, err, want)
		}
	}
	is("create", system.Create(ctx, ours, of("ours", "1")), nil)
	is("create what is there", system.Create(ctx, ours, of("ours", "2")), credential.ErrExists)
	is("set another's", system.Set(ctx, ours, kept("theirs", "1")), credential.ErrConflict)
	is("set a second", system.Set(ctx, ours, kept("ours", "2")), nil)
	is("set it again", system.Set(ctx, ours, kept("ours", "2")), nil)
	is("retire for what is not accepted", system.Retire(ctx, ours, of("ours", "3"), nil), credential.ErrUnproven)
	is("retire for another's", system.Retire(ctx, ours, of("theirs", "x"), []string{"ours"}), credential.ErrUnproven)
	is("delete another's", system.Delete(ctx, ours, "none", "theirs"), credential.ErrConflict)
	is("delete unmarked", system.Delete(ctx, ours, "unmarked"), credential.ErrConflict)
	for _, change := range []credential.Assignment{kept("ours", "3"), kept("none", "1")} {
		if system.Set(ctx, ours, change) == nil {
			t.Errorf("it sets a third password, or that of a missing user: %+v", change)
		}
	}
	if wrote, err := system.Converge(ctx, ours, "ours", "theirs", "unmarked", "none"); wrote || err != nil {
		t.Errorf("where there is nothing to grant, it wrote: %t, %v", wrote, err)
	}
	if more, _ := system.Superseded(ctx, theirs, of("theirs", "x"), []string{"ours"}); more.Accepted {
		t.Error("users of others count as the owner's")
	}
	now := map[string]bool{
		"1": users.Accepts(of("ours", "1")), "2": users.Accepts(of("ours", "2")), "3": users.Accepts(of("ours", "3")), "x": users.Accepts(of("theirs", "x")),
	}
	if diff := cmp.Diff(map[string]bool{"1": true, "2": true, "3": false, "x": true}, now); diff != "" {
		t.Errorf("who is let in (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ours", "theirs", "unmarked"}, users.Names()); diff != "" {
		t.Errorf("who is there (-want +got):\n%s", diff)
	}
	if had := users.Had("ours"); len(had) != 3 || users.Granted("ours") != "all" || users.Granted("theirs") != "" {
		t.Errorf("it has had %d passwords, want 3; granted is %q, of another %q", len(had), users.Granted("ours"), users.Granted("theirs"))
	}
}
