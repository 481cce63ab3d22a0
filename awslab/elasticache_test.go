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

// create asks for a user with a password.
func (w world) create(id, password string) error {
	_, err := w.caches.CreateUser(w.Context(), &elasticache.CreateUserInput{
		UserId: &id, UserName: &id, Engine: aws.String("redis"), AccessString: aws.String(access), Passwords: []string{password},
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}},
	})
	return err
}

// modify asks for other passwords.
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
	w.says(err, "")
	return found.Users[0]
}

func (w world) group() types.UserGroup {
	w.Helper()
	id := "tenants"
	found, err := w.caches.DescribeUserGroups(w.Context(), &elasticache.DescribeUserGroupsInput{UserGroupId: &id})
	w.says(err, "")
	return found.UserGroups[0]
}

// tenant-and-database.md §5: a user that is active and in a group logs in to a real Redis, with two passwords while it has two, and not
// when it has left, or is deleted.
func TestUsersLogInToARealRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{})
	w.lab.AddGroup("tenants")
	w.says(w.create("T-Logins", first), "") // AWS stores ids in lower case, and names as they are.
	refused := func(password string) bool {
		err := w.login("T-Logins", password)
		return err != nil && strings.Contains(err.Error(), "WRONGPASS")
	}
	if !refused(first) {
		t.Error("a user that is in no group logs in")
	}
	w.says(w.members("tenants", []string{"t-logins"}, nil), "")
	if err := w.login("T-Logins", first); err != nil || !refused(second) {
		t.Errorf("the user in the group does not log in, or with any password: %v", err)
	}
	w.isDescribed(w.user("t-logins"))
	w.says(w.modify("t-logins", first, second), "")
	if w.login("T-Logins", first) != nil || w.login("T-Logins", second) != nil {
		t.Error("one of two passwords is refused")
	}
	w.says(w.modify("t-logins", second), "")
	if !refused(first) || w.login("T-Logins", second) != nil {
		t.Error("the list of passwords was not replaced")
	}
	w.says(w.members("tenants", nil, []string{"t-logins"}), "")
	if !refused(second) {
		t.Error("a user that has left logs in")
	}
	w.says(w.members("tenants", []string{"t-logins"}, nil), "")
	w.says(w.remove("t-logins"), "")
	if !refused(second) || !cmp.Equal(w.group().UserIds, []string{"default"}) {
		t.Error("a deleted user logs in, or is in the group")
	}
	w.says(w.modify("t-logins", first), "UserNotFound")
	if text := fmt.Sprintf("%+v", w.lab.Journal()); strings.Contains(text, first) || strings.Contains(text, second) {
		t.Error("the journal holds a password")
	}
}

// isDescribed shows that a user of one password is told as AWS tells it.
func (w world) isDescribed(found types.User) {
	w.Helper()
	if *found.AccessString != "on ~app:* resetchannels +@all -@admin -@dangerous" || *found.Authentication.PasswordCount != 1 ||
		*found.UserName != "T-Logins" || !cmp.Equal(found.UserGroupIds, []string{"tenants"}) || *found.ARN != "arn:aws:elasticache:eu-central-1:123456789012:user:t-logins" {
		w.Errorf("the user is %+v", found)
	}
}

// tenant-and-database.md §1, Terraform issues: what is being changed cannot be changed, and a change is in force only at its end.
func TestChangesTakeTheirTime(t *testing.T) {
	t.Parallel()
	settle := awslab.Settle{Create: 60 * time.Millisecond, Modify: 60 * time.Millisecond, Delete: 60 * time.Millisecond}
	w := newWorld(t, awslab.Options{Users: settle, Groups: settle})
	w.lab.AddGroup("tenants")
	activeUser := func() bool { return *w.user("t-slow").Status == "active" }
	activeGroup := func() bool { return *w.group().Status == "active" }
	w.says(w.create("t-slow", first), "")
	w.says(w.create("t-slow", first), "UserAlreadyExists")
	w.says(w.modify("t-slow", second), "InvalidUserState")
	w.says(w.remove("t-slow"), "InvalidUserState")
	w.says(w.members("tenants", []string{"t-slow"}, nil), "InvalidParameterValue")
	w.eventually("the user is active", activeUser)
	w.says(w.members("tenants", []string{"t-slow"}, nil), "")
	w.says(w.members("tenants", nil, []string{"t-slow"}), "InvalidUserGroupState")
	if pending := w.group(); *pending.Status != "modifying" || len(pending.UserIds) != 1 || !cmp.Equal(pending.PendingChanges.UserIdsToAdd, []string{"t-slow"}) {
		t.Errorf("the group is %+v", pending)
	}
	w.eventually("the group is active", activeGroup)
	w.says(w.modify("t-slow", second), "")
	if *w.user("t-slow").Status != "modifying" || w.login("t-slow", first) != nil {
		t.Error("the password is refused before the change is in force")
	}
	w.eventually("the user is active", activeUser)
	if w.login("t-slow", second) != nil || w.login("t-slow", first) == nil {
		t.Error("the change is not in force")
	}
	w.says(w.remove("t-slow"), "")
	w.says(w.remove("t-slow"), "InvalidUserState")
	w.eventually("the user is gone", func() bool {
		_, err := w.caches.DescribeUsers(t.Context(), &elasticache.DescribeUsersInput{UserId: aws.String("t-slow")})
		return err != nil
	})
	w.eventually("the group is active", activeGroup)
	w.says(w.remove("t-slow"), "UserNotFound")
}

// tenant-and-database.md §2, Details, ElastiCache: the rules that a program must keep.
func TestUsersAndGroupsHaveTheRulesOfElastiCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{MaxUsers: 5, MaxGroupUsers: 3})
	w.lab.AddGroup("tenants")
	for _, id := range []string{"t-1", "t-2", "t-3"} {
		w.says(w.create(id, first), "")
	}
	w.says(w.create("1-t", first), "InvalidParameterValue")
	w.says(w.create("t_x", first), "InvalidParameterValue")
	w.says(w.create(strings.Repeat("t", 41), first), "InvalidParameterValue")
	w.says(w.create("t-x", "short"), "InvalidParameterValue")
	w.says(w.create("t-x", strings.Repeat("x", 129)), "InvalidParameterValue")
	w.says(w.modify("t-1", first, second, first+second), "InvalidParameterValue")
	_, err := w.caches.ModifyUser(t.Context(), &elasticache.ModifyUserInput{UserId: aws.String("t-1"), AccessString: aws.String("on >password ~*")})
	w.says(err, "InvalidParameterValue")
	w.says(w.members("tenants", nil, nil), "InvalidParameterCombination")
	w.says(w.members("none", []string{"t-1"}, nil), "UserGroupNotFound")
	w.says(w.members("tenants", []string{"t-1", "none"}, nil), "UserNotFound")
	w.says(w.members("tenants", nil, []string{"default"}), "DefaultUserRequired")
	w.says(w.members("tenants", []string{"t-1", "t-2", "t-3"}, nil), "UserQuotaExceeded")
	w.says(w.members("tenants", []string{"t-1"}, nil), "")
	// A member that has gone makes the whole request fail, so t-2 does not come in.
	w.says(w.members("tenants", []string{"t-2"}, []string{"t-3"}), "InvalidParameterValue")
	if got := w.group().UserIds; !cmp.Equal(got, []string{"default", "t-1"}) {
		t.Errorf("the members are %v", got)
	}
	_, err = w.caches.CreateUser(t.Context(), &elasticache.CreateUserInput{
		UserId: aws.String("t-4"), UserName: aws.String("t-1"), Engine: aws.String("valkey"), AccessString: aws.String(access), NoPasswordRequired: aws.Bool(true),
	})
	w.says(err, "")
	w.says(w.members("tenants", []string{"t-4"}, nil), "DuplicateUserName")
	w.says(w.create("t-5", first), "UserQuotaExceeded")
	w.says(w.remove("default"), "DefaultUserAssociatedToUserGroup")
	newGroup := &elasticache.CreateUserGroupInput{UserGroupId: aws.String("Others"), Engine: aws.String("redis"), UserIds: []string{"t-2"}}
	_, err = w.caches.CreateUserGroup(t.Context(), newGroup)
	w.says(err, "DefaultUserRequired")
	newGroup.UserIds = []string{"default", "t-2"}
	_, err = w.caches.CreateUserGroup(t.Context(), newGroup)
	w.says(err, "")
	_, err = w.caches.CreateUserGroup(t.Context(), newGroup)
	w.says(err, "UserGroupAlreadyExists")
	_, err = w.caches.DeleteUserGroup(t.Context(), &elasticache.DeleteUserGroupInput{UserGroupId: aws.String("others")})
	w.says(err, "")
	if w.login("t-2", first) == nil {
		t.Error("the member of a deleted group logs in")
	}
}

func TestUsersAreListedByPageAndTagged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{})
	want := []string{"default"}
	for i := range 7 {
		id := fmt.Sprint("t-page", i)
		want = append(want, id)
		w.says(w.create(id, first), "")
	}
	var got []string
	pages := elasticache.NewDescribeUsersPaginator(w.caches, &elasticache.DescribeUsersInput{MaxRecords: aws.Int32(3)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		w.says(err, "")
		for _, found := range page.Users {
			got = append(got, *found.UserId)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || w.lab.Count("DescribeUsers") != 3 {
		t.Errorf("in %d pages (-want +got):\n%s", w.lab.Count("DescribeUsers"), diff)
	}
	arn := w.user("t-page0").ARN
	_, err := w.caches.AddTagsToResource(t.Context(), &elasticache.AddTagsToResourceInput{ResourceName: arn, Tags: []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}}})
	w.says(err, "")
	_, err = w.caches.RemoveTagsFromResource(t.Context(), &elasticache.RemoveTagsFromResourceInput{ResourceName: arn, TagKeys: []string{"team"}})
	w.says(err, "")
	tags, err := w.caches.ListTagsForResource(t.Context(), &elasticache.ListTagsForResourceInput{ResourceName: arn})
	w.says(err, "")
	if len(tags.TagList) != 1 || *tags.TagList[0].Key != "b" {
		t.Errorf("the tags are %+v", tags.TagList)
	}
}

// tenant-and-database.md §2, Kill-point runs: the SDK repeats a call whose answer was lost, and hears that the user is there.
func TestALostAnswerOfACreationIsAUserThatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{})
	w.lab.Fail("CreateUser", awslab.Fault{Lost: true})
	w.says(w.create("t-lost", first), "UserAlreadyExists")
	w.lab.Fail("ModifyUser", slices.Repeat([]awslab.Fault{{Code: "InvalidUserState"}}, 2)...)
	w.says(w.modify("t-lost", second), "InvalidUserState")
	w.says(w.modify("t-lost", second), "InvalidUserState")
	w.says(w.modify("t-lost", second), "")
	if got := w.lab.Journal()[0]; got.Code != "" || !got.Write || got.Service != "elasticache" || got.Resource != "t-lost" {
		t.Errorf("the first call is %+v", got)
	}
}

// A Redis that has forgotten its users, as one that restarts, gets them again.
func TestUsersAreRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, awslab.Options{})
	w.lab.AddGroup("tenants")
	w.says(w.create("t-restored", first), "")
	w.says(w.members("tenants", []string{"t-restored"}, nil), "")
	if err := w.forget("t-restored"); err != nil || w.login("t-restored", first) == nil {
		t.Fatalf("the user logs in though Redis forgot it: %v", err)
	}
	if err := w.lab.Restore(); err != nil || w.login("t-restored", first) != nil {
		t.Errorf("the user does not log in: %v", err)
	}
}
