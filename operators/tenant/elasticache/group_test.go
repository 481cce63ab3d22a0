package elasticache_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// apps are worlds that are one, each with an app of its own.
func (w *world) apps(count int) []*world {
	var all []*world
	for i := range count {
		one := *w
		one.app = names.Tenant{Name: fmt.Sprintf("%s-%d", w.app.Tenant, i)}.App("shop")
		one.users.Access.Prefix = one.app.KeyPrefix("")
		all = append(all, &one)
	}
	return all
}

// all does something for each at the same time.
func all(apps []*world, do func(*world)) {
	var group sync.WaitGroup
	for _, one := range apps {
		group.Go(func() { do(one) })
	}
	group.Wait()
}

// members are the users of a group.
func (w *world) members(group string) []string {
	w.Helper()
	found, err := w.client.DescribeUserGroups(w.Context(), &sdk.DescribeUserGroupsInput{UserGroupId: &group})
	w.none(err)
	return found.UserGroups[0].UserIds
}

// createAll makes users that are in no group yet.
func createAll(apps []*world) {
	all(apps, func(one *world) {
		record := credential.Record{Username: one.username(), Password: credential.NewPassword("password-of-" + one.app.Tenant)}
		one.none(one.users.Create(one.Context(), one.owner(), record))
	})
}

// 200 users are added to one user group and removed again in a handful of changes, although the group is modifying after each. No user is
// left out.
func TestTwoHundredUsersComeIntoOneGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "many", settle(0, 100*time.Millisecond), func(o *awslab.Options) { o.MaxGroupUsers = 201 }, func(c *elasticache.Config) { c.GroupLimit = 201 })
	apps := w.apps(200)
	createAll(apps)
	all(apps, func(one *world) {
		one.settles(func() error {
			_, err := one.users.ConvergeAccess(one.Context(), one.owner(), one.username())
			return err
		})
	})
	came := w.lab.Count("ModifyUserGroup")
	if got := len(w.members("tenants")); got != 201 || came > 8 {
		t.Errorf("%d users are in the group after %d changes, want 201 after at most 8", got, came)
	}
	all(apps, func(one *world) {
		one.none(one.login(one.username(), credential.NewPassword("password-of-"+one.app.Tenant)))
		one.settles(func() error { return one.users.Delete(one.Context(), one.owner(), one.username()) })
	})
	left := w.lab.Count("ModifyUserGroup") - came
	if got := len(w.members("tenants")); got != 1 || left > 20 {
		t.Errorf("%d users are in the group after %d changes, want 1 after at most 20", got, left)
	}
	t.Logf("they came in %d changes, and left in %d", came, left)
}

// AWS rejects a whole request if it removes a user that is not a member, or contains a user that AWS does not accept. Other users are still
// added, and no request both adds and removes users.
func TestOneUserKeepsNoOtherOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "poison", settle(0, 20*time.Millisecond))
	apps := w.apps(7)
	createAll(apps)
	// One has the name of another, and one is deleted out of band after it was asked for.
	double := apps[3].username()
	_, err := w.client.CreateUser(t.Context(), &sdk.CreateUserInput{
		UserId: aws.String("double"), UserName: &double, Engine: aws.String("redis"), AccessString: aws.String("on ~x"), NoPasswordRequired: aws.Bool(true),
	})
	w.none(err)
	_, err = w.client.ModifyUserGroup(t.Context(), &sdk.ModifyUserGroupInput{UserGroupId: aws.String("tenants"), UserIdsToAdd: []string{"double"}})
	w.none(err)
	var refused error
	all(apps, func(one *world) {
		one.settles(func() error {
			_, err := one.users.ConvergeAccess(one.Context(), one.owner(), one.username())
			if errors.Is(err, elasticache.ErrDuplicate) {
				refused, err = err, nil
			}
			return err
		})
	})
	if got := w.members("tenants"); len(got) != 8 || slices.Contains(got, double) || refused == nil || !strings.Contains(refused.Error(), double) {
		t.Errorf("the members are %v, and %s was refused with %v", got, double, refused)
	}
	// The first is detached out of band, the second leaves, and the duplicate comes when its rival is gone.
	_, err = w.client.DeleteUser(t.Context(), &sdk.DeleteUserInput{UserId: aws.String(apps[0].username())})
	w.none(err)
	all(apps[:2], func(one *world) {
		one.settles(func() error { return one.users.Delete(one.Context(), one.owner(), one.username()) })
	})
	w.settles(func() error {
		_, err := w.client.DeleteUser(t.Context(), &sdk.DeleteUserInput{UserId: aws.String("double")})
		return settledBy(err)
	})
	apps[3].settles(func() error {
		_, err := w.users.ConvergeAccess(t.Context(), apps[3].owner(), double)
		return err
	})
	if got := w.members("tenants"); len(got) != 6 || !slices.Contains(got, double) {
		t.Errorf("the members are %v", got)
	}
}

// settledBy takes what passes for what settles.
func settledBy(err error) error {
	if err != nil && strings.Contains(err.Error(), "InvalidUserState") {
		return elasticache.ErrSettling
	}
	return err
}

// If a group is full, a user is added to the next one and found there again. If all are full, that is an error.
func TestUsersGoToTheFirstGroupWithRoom(t *testing.T) {
	t.Parallel()
	few := func(o *awslab.Options) { o.MaxGroupUsers = 4 }
	groups := func(c *elasticache.Config) { c.Groups, c.GroupLimit = []string{"one", "two"}, 4 }
	for name, limit := range map[string]int{"known": 4, "said by AWS": 100} {
		w := newWorld(t, "shards", few, groups, func(c *elasticache.Config) { c.GroupLimit = limit }, settle(0, 10*time.Millisecond))
		apps := w.apps(7)
		createAll(apps)
		var mu sync.Mutex
		full := 0
		join := func(one *world) {
			one.settles(func() error {
				_, err := one.users.ConvergeAccess(one.Context(), one.owner(), one.username())
				if errors.Is(err, elasticache.ErrQuota) {
					mu.Lock()
					defer mu.Unlock()
					full, err = full+1, nil
				}
				return err
			})
		}
		all(apps, join)
		if one, two := len(w.members("one")), len(w.members("two")); one != 4 || two != 4 || full != 1 {
			t.Errorf("%s: %d and %d users are in the groups, and %d were told that they are full", name, one, two, full)
		}
		w.lab.Forget()
		full = 0
		all(apps, join)
		if name == "known" && w.lab.Writes() != 0 || full != 1 {
			t.Errorf("%s: they are not found again: %v", name, w.lab.Journal())
		}
		all(apps, func(one *world) {
			one.settles(func() error { return one.users.Delete(one.Context(), one.owner(), one.username()) })
		})
	}
}

// Two processes without an election, and a group that another client changes, cost only time.
func TestTwoProcessesShareAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "processes", settle(10*time.Millisecond, 30*time.Millisecond))
	apps := append(w.apps(5), w.apps(5)...) // Each app twice.
	other := w.open()
	for _, one := range apps[5:] {
		one.users.Cache = other
	}
	got := make([]credential.Outcome, len(apps))
	var group sync.WaitGroup
	for i, one := range apps {
		group.Go(func() { got[i] = one.provisioned(one.user("")) })
	}
	group.Wait()
	for i := range 5 {
		if got[i].Record != got[i+5].Record || got[i].Generation != 1 {
			t.Errorf("two processes have %+v and %+v", got[i], got[i+5])
		}
		w.none(w.login(got[i].Username, got[i].Password))
	}
}
