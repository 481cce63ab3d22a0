package awslab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/aws-sdk-go-v2/service/elasticache/types"
	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/awslab"
)

const (
	first  = "first-password-0123"
	second = "second-password-0123"
	access = "on ~app:* +@all -@admin -@dangerous"
)

// create creates a user with a password.
func (w world) create(id, password string) error {
	_, err := w.caches.CreateUser(w.Context(), &elasticache.CreateUserInput{
		UserId: &id, UserName: &id, Engine: aws.String("redis"), AccessString: aws.String(access), Passwords: []string{password},
	})
	return err
}

// modify replaces the passwords of a user.
func (w world) modify(id string, passwords ...string) error {
	_, err := w.caches.ModifyUser(w.Context(), &elasticache.ModifyUserInput{
		UserId: &id, AuthenticationMode: &types.AuthenticationMode{Type: types.InputAuthenticationTypePassword, Passwords: passwords},
	})
	return err
}

func (w world) remove(id string) error {
	_, err := w.caches.DeleteUser(w.Context(), &elasticache.DeleteUserInput{UserId: &id})
	return err
}

func (w world) members(group string, add, remove []string) error {
	_, err := w.caches.ModifyUserGroup(w.Context(), &elasticache.ModifyUserGroupInput{UserGroupId: &group, UserIdsToAdd: add, UserIdsToRemove: remove})
	return err
}

func (w world) user(id string) types.User {
	w.Helper()
	found, err := w.caches.DescribeUsers(w.Context(), &elasticache.DescribeUsersInput{UserId: &id})
	w.expectCode(err, "")
	return found.Users[0]
}

func (w world) group() types.UserGroup {
	w.Helper()
	id := "tenants"
	found, err := w.caches.DescribeUserGroups(w.Context(), &elasticache.DescribeUserGroupsInput{UserGroupId: &id})
	w.expectCode(err, "")
	return found.UserGroups[0]
}

// A user that is active and in a group can log in to a real Redis with each of its passwords. It cannot log in after it has left the group
// or was deleted.
func TestUsersLogInToARealRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{})
	w.lab.AddGroup("tenants")
	w.expectCode(w.create("T-Logins", first), "") // AWS stores IDs in lower case, and names unchanged.
	refused := func(password string) bool {
		err := w.login("T-Logins", password)
		return err != nil && strings.Contains(err.Error(), "WRONGPASS")
	}
	if !refused(first) {
		t.Error("a user without a group can log in")
	}
	w.expectCode(w.members("tenants", []string{"t-logins"}, nil), "")
	if err := w.login("T-Logins", first); err != nil || !refused(second) {
		t.Errorf("a user in a group cannot log in (error %v), or can log in with a wrong password", err)
	}
	w.isDescribed(w.user("t-logins"))
	w.expectCode(w.modify("t-logins", first, second), "")
	if w.login("T-Logins", first) != nil || w.login("T-Logins", second) != nil {
		t.Error("one of two passwords is rejected")
	}
	w.expectCode(w.modify("t-logins", second), "")
	if !refused(first) || w.login("T-Logins", second) != nil {
		t.Error("the list of passwords was not replaced")
	}
	w.expectCode(w.members("tenants", nil, []string{"t-logins"}), "")
	if !refused(second) {
		t.Error("a user that has left the group can log in")
	}
	w.expectCode(w.members("tenants", []string{"t-logins"}, nil), "")
	w.expectCode(w.remove("t-logins"), "")
	if !refused(second) || !cmp.Equal(w.group().UserIds, []string{"default"}) {
		t.Error("a deleted user can log in or is still in the group")
	}
	w.expectCode(w.modify("t-logins", first), "UserNotFound")
	if text := fmt.Sprintf("%+v", w.lab.Journal()); strings.Contains(text, first) || strings.Contains(text, second) {
		t.Error("the journal contains a password")
	}
}

// isDescribed checks the description of a user with one password.
func (w world) isDescribed(found types.User) {
	w.Helper()
	if *found.AccessString != "on ~app:* resetchannels +@all -@admin -@dangerous" || *found.Authentication.PasswordCount != 1 ||
		*found.UserName != "T-Logins" || !cmp.Equal(found.UserGroupIds, []string{"tenants"}) {
		w.Errorf("unexpected description of the user: %+v", found)
	}
}

// A user or group that is being changed cannot be changed again, and a change becomes effective only at its end.
func TestChangesSettle(t *testing.T) {
	t.Parallel()
	const settle = 60 * time.Millisecond
	w := newWorld(t, awslab.Options{Users: settle, Groups: settle})
	w.lab.AddGroup("tenants")
	activeUser := func() bool { return *w.user("t-slow").Status == "active" }
	activeGroup := func() bool { return *w.group().Status == "active" }
	w.expectCode(w.create("t-slow", first), "")
	w.expectCode(w.create("t-slow", first), "UserAlreadyExists")
	w.expectCode(w.modify("t-slow", second), "InvalidUserState")
	w.expectCode(w.remove("t-slow"), "InvalidUserState")
	w.expectCode(w.members("tenants", []string{"t-slow"}, nil), "InvalidParameterValue")
	w.eventually("the user is active", activeUser)
	w.expectCode(w.members("tenants", []string{"t-slow"}, nil), "")
	w.expectCode(w.members("tenants", nil, []string{"t-slow"}), "InvalidUserGroupState")
	if pending := w.group(); *pending.Status != "modifying" || len(pending.UserIds) != 1 {
		t.Errorf("unexpected group during the change: %+v", pending)
	}
	w.eventually("the group is active", activeGroup)
	w.expectCode(w.modify("t-slow", second), "")
	if *w.user("t-slow").Status != "modifying" || w.login("t-slow", first) != nil {
		t.Error("the old password is rejected before the change is effective")
	}
	w.eventually("the user is active", activeUser)
	if w.login("t-slow", second) != nil || w.login("t-slow", first) == nil {
		t.Error("the change is not effective")
	}
	w.expectCode(w.remove("t-slow"), "")
	w.expectCode(w.remove("t-slow"), "InvalidUserState")
	w.eventually("the user is gone", func() bool {
		_, err := w.caches.DescribeUsers(t.Context(), &elasticache.DescribeUsersInput{UserId: aws.String("t-slow")})
		return err != nil
	})
	w.eventually("the group is active", activeGroup)
	w.expectCode(w.remove("t-slow"), "UserNotFound")
}

func TestUsersAndGroupsFollowTheRulesOfElastiCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{MaxUsers: 5, MaxGroupUsers: 3})
	w.lab.AddGroup("tenants")
	for _, id := range []string{"t-1", "t-2", "t-3"} {
		w.expectCode(w.create(id, first), "")
	}
	w.expectCode(w.create("1-t", first), "InvalidParameterValue")
	w.expectCode(w.create("t_x", first), "InvalidParameterValue")
	w.expectCode(w.create(strings.Repeat("t", 41), first), "InvalidParameterValue")
	w.expectCode(w.create("t-x", "short"), "InvalidParameterValue")
	w.expectCode(w.create("t-x", strings.Repeat("x", 129)), "InvalidParameterValue")
	w.expectCode(w.modify("t-1", first, second, first+second), "InvalidParameterValue")
	_, err := w.caches.ModifyUser(t.Context(), &elasticache.ModifyUserInput{UserId: aws.String("t-1"), AccessString: aws.String("on >password ~*")})
	w.expectCode(err, "InvalidParameterValue")
	w.expectCode(w.members("tenants", nil, nil), "InvalidParameterCombination")
	w.expectCode(w.members("none", []string{"t-1"}, nil), "UserGroupNotFound")
	w.expectCode(w.members("tenants", []string{"t-1", "none"}, nil), "UserNotFound")
	w.expectCode(w.members("tenants", nil, []string{"default"}), "DefaultUserRequired")
	w.expectCode(w.members("tenants", []string{"t-1", "t-2", "t-3"}, nil), "UserQuotaExceeded")
	w.expectCode(w.members("tenants", []string{"t-1"}, nil), "")
	// Removing a user that is not a member fails the whole request, so t-2 is not added.
	w.expectCode(w.members("tenants", []string{"t-2"}, []string{"t-3"}), "InvalidParameterValue")
	if got := w.group().UserIds; !cmp.Equal(got, []string{"default", "t-1"}) {
		t.Errorf("members %v, want default and t-1", got)
	}
	_, err = w.caches.CreateUser(t.Context(), &elasticache.CreateUserInput{
		UserId: aws.String("t-4"), UserName: aws.String("t-1"), Engine: aws.String("valkey"), AccessString: aws.String(access), NoPasswordRequired: aws.Bool(true),
	})
	w.expectCode(err, "")
	w.expectCode(w.members("tenants", []string{"t-4"}, nil), "DuplicateUserName")
	w.expectCode(w.create("t-5", first), "UserQuotaExceeded")
	w.expectCode(w.remove("default"), "DefaultUserAssociatedToUserGroup")
}

func TestUsersAreListedByPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{})
	want := []string{"default"}
	for i := range 120 {
		id := fmt.Sprintf("t-page%03d", i)
		want = append(want, id)
		w.expectCode(w.create(id, first), "")
	}
	var got []string
	read := 0 // The SDK repeats a request whose connection breaks, so the journal can have more.
	pages := elasticache.NewDescribeUsersPaginator(w.caches, &elasticache.DescribeUsersInput{})
	for ; pages.HasMorePages(); read++ {
		page, err := pages.NextPage(t.Context())
		w.expectCode(err, "")
		for _, found := range page.Users {
			got = append(got, *found.UserId)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || read != 2 {
		t.Errorf("users in %d pages, want 2 (-want +got):\n%s", read, diff)
	}
}

// The SDK retries a call whose response was lost. The retry fails because the user exists.
func TestLostResponseOfACreationLeavesTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{})
	w.lab.Fail("CreateUser", awslab.Fault{Lost: true})
	w.expectCode(w.create("t-lost", first), "UserAlreadyExists")
	w.lab.Fail("ModifyUser", slices.Repeat([]awslab.Fault{{Code: "InvalidUserState"}}, 2)...)
	w.expectCode(w.modify("t-lost", second), "InvalidUserState")
	w.expectCode(w.modify("t-lost", second), "InvalidUserState")
	w.expectCode(w.modify("t-lost", second), "")
	if got := w.lab.Journal()[0]; got.Code != "" || !got.Write || got.Service != "elasticache" || got.Resource != "t-lost" {
		t.Errorf("unexpected first call: %+v", got)
	}
}

// Restore writes the users to a Redis that has lost them, for example by a restart.
func TestUsersAreRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{})
	w.lab.AddGroup("tenants")
	w.expectCode(w.create("t-restored", first), "")
	w.expectCode(w.members("tenants", []string{"t-restored"}, nil), "")
	if err := w.forget("t-restored"); err != nil || w.login("t-restored", first) == nil {
		t.Fatalf("the user can log in after it was deleted from Redis (error of the deletion: %v)", err)
	}
	if err := w.lab.Restore(); err != nil || w.login("t-restored", first) != nil {
		t.Errorf("the user cannot log in after Restore: %v", err)
	}
}
