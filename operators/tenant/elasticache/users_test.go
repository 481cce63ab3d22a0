package elasticache_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"
	"github.com/aws/smithy-go/logging"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// What is creating, modifying or deleting is waited for, and never a failure; a user that is done
// costs no write; and it is gone from the group and from AWS when it is deleted.
func TestAUserLivesThroughAllItsStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "states", settle(40*time.Millisecond, 40*time.Millisecond))
	outcome := w.provisioned(w.user(""))
	if err := w.login(w.username(), outcome.Password); err != nil || !outcome.Verified || !outcome.Until.IsZero() {
		t.Errorf("the user is %+v, and logs in with %v", outcome, err)
	}
	w.lab.Forget()
	for range 10 {
		again := w.provisioned(w.user(""))
		if again.Record != outcome.Record {
			t.Error("it gives another record")
		}
	}
	if w.lab.Writes() != 0 {
		t.Errorf("the steady state writes: %v", w.lab.Journal())
	}
	w.settles(func() error { return w.users.Delete(t.Context(), w.owner(), w.username()) })
	w.none(w.users.Delete(t.Context(), w.owner(), w.username()))
	state, err := w.users.Observe(t.Context(), w.owner(), w.username(), credential.Password{})
	if err != nil || state != credential.Absent || w.login(w.username(), outcome.Password) == nil {
		t.Errorf("the user is %s, %v, or logs in", state, err)
	}
	// It has left the group before it was deleted.
	if w.lab.Count("ModifyUserGroup") != 1 || w.lab.Count("DeleteUser") != 1 {
		t.Errorf("the deletion was %v", w.lab.Journal())
	}
}

// Each state of a user; and only a cache that says WRONGPASS, for a user that is active and in the group, has
// refused a password.
func TestStatesAreTold(t *testing.T) {
	t.Parallel()
	password, other := credential.NewPassword("password-of-16-letters"), credential.NewPassword("another-of-16-letters")
	mark := names.CacheMark(credential.Owner{Operator: "tenants.einmal.dev@lab", Name: "told/shop"}.String())
	for name, row := range map[string]struct {
		access string
		try    credential.Password
		change func(w *world)
		want   credential.State
		err    error
	}{
		"accepted":            {"on ~x " + mark + " +@all", password, nil, credential.Accepted, nil},
		"refused":             {"on ~x " + mark + " +@all", other, nil, credential.Refused, nil},
		"present":             {"on ~x " + mark + " +@all", credential.Password{}, nil, credential.Present, nil},
		"foreign":             {"on ~x ~einmal.owner:another +@all", password, nil, credential.Foreign, nil},
		"unmarked":            {"on ~x +@all", password, nil, credential.Unmarked, nil},
		"in no group":         {"on ~x " + mark + " +@all", other, func(w *world) { w.leave() }, "", elasticache.ErrSettling},
		"modifying":           {"on ~x " + mark + " +@all", other, func(w *world) { w.touch() }, "", elasticache.ErrSettling},
		"the group modifying": {"on ~x " + mark + " +@all", other, func(w *world) { w.crowd() }, "", elasticache.ErrSettling},
		"no password needed":  {"on ~x " + mark + " +@all", other, func(w *world) { w.openDoor() }, credential.Refused, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "told")
			w.plant(row.access, password.Reveal())
			if row.change != nil {
				row.change(w)
			}
			w.lab.Forget()
			got, err := w.users.Observe(t.Context(), w.owner(), w.username(), row.try)
			if got != row.want || !errors.Is(err, row.err) || w.lab.Writes() != 0 {
				t.Errorf("it is %q, %v, with %d writes; want %q, %v", got, err, w.lab.Writes(), row.want, row.err)
			}
			w.none(w.forgetUser())
		})
	}
}

// forgetUser takes the user from the Redis, which worlds share.
func (w *world) forgetUser() error {
	admin := node.Admin()
	defer func() { _ = admin.Close() }()
	return admin.ACLDelUser(w.Context(), w.username()).Err()
}

// leave takes the user out of the group.
func (w *world) leave() {
	_, err := w.client.ModifyUserGroup(w.Context(), &sdk.ModifyUserGroupInput{UserGroupId: aws.String("tenants"), UserIdsToRemove: []string{w.username()}})
	w.none(err)
}

// touch makes the user modifying, for long.
func (w *world) touch() {
	w.lab.Adjust(settle(time.Hour, 0))
	_, err := w.client.ModifyUser(w.Context(), &sdk.ModifyUserInput{UserId: aws.String(w.username()), AccessString: w.seen(w.username()).AccessString})
	w.none(err)
}

// crowd makes the group modifying, for long.
func (w *world) crowd() {
	w.lab.Adjust(settle(0, time.Hour))
	none := aws.Bool(true)
	_, err := w.client.CreateUser(w.Context(), &sdk.CreateUserInput{
		UserId: aws.String("crowd"), UserName: aws.String("crowd"), Engine: aws.String("redis"), AccessString: aws.String("on ~x"), NoPasswordRequired: none,
	})
	w.none(err)
	_, err = w.client.ModifyUserGroup(w.Context(), &sdk.ModifyUserGroupInput{UserGroupId: aws.String("tenants"), UserIdsToAdd: []string{"crowd"}})
	w.none(err)
}

// openDoor lets the user in without a password.
func (w *world) openDoor() {
	_, err := w.client.ModifyUser(w.Context(), &sdk.ModifyUserInput{UserId: aws.String(w.username()), NoPasswordRequired: aws.Bool(true)})
	w.none(err)
}

// Both passwords are accepted during the overlap, so no login is ever rejected; only the old one is retired after it; and
// the same request asks for nothing more.
func TestARotationRefusesNoLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "rotates", settle(30*time.Millisecond, 30*time.Millisecond))
	first := w.provisioned(w.user(""))
	stop := w.witness(w.username(), first.Password)
	second := w.provisioned(w.user("r1"))
	again := w.provisioned(w.user("r1"))
	if bad := stop(); bad != 0 || second.Password == first.Password || second.Generation != 2 || again.Record != second.Record || second.Until.IsZero() {
		t.Errorf("%d logins were refused; %+v, then %+v, then %+v", bad, first, second, again)
	}
	w.none(w.login(w.username(), first.Password), w.login(w.username(), second.Password))
	if got := *w.seen(w.username()).Authentication.PasswordCount; got != 2 {
		t.Errorf("the user has %d passwords", got)
	}
	waits := w.provisioned(w.user("r2"))
	if !waits.Waits || waits.Generation != 2 {
		t.Errorf("a second rotation does not wait for the overlap of the first: %+v", waits)
	}
	over := w.user("r1")
	over.Overlap = time.Nanosecond
	w.provisioned(over)
	last := w.provisioned(over)
	if w.login(w.username(), first.Password) == nil || w.login(w.username(), second.Password) != nil || !last.Until.IsZero() {
		t.Errorf("after the overlap: %+v", last)
	}
}

// Manual changes are corrected. A user of another owner, or without a mark, is not changed.
func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	t.Parallel()
	for tenant, access := range map[string]string{"theirs": "on ~x ~einmal.owner:another +@all", "unmarked": "on ~x +@all"} {
		w := newWorld(t, tenant)
		w.plant(access, "password-of-16-letters")
		w.lab.Forget()
		_, err := w.provision(w.user(""))
		deletion := w.users.Delete(t.Context(), w.owner(), w.username())
		if !errors.Is(err, credential.ErrConflict) || !errors.Is(deletion, credential.ErrConflict) || w.lab.Writes() != 0 {
			t.Errorf("%s: %v, %v; %v", tenant, err, deletion, w.lab.Journal())
		}
		adopting := w.user("")
		adopting.Policy = credential.Policy{Adopt: true, ReplaceMissing: true}
		if tenant == "unmarked" {
			got := w.provisioned(adopting)
			w.none(w.login(w.username(), got.Password))
			continue
		}
		_, err = w.provision(adopting)
		set := w.users.Set(t.Context(), w.owner(), credential.Assignment{Record: credential.Record{Username: w.username()}})
		if !errors.Is(err, credential.ErrConflict) || !errors.Is(set, credential.ErrConflict) || w.lab.Writes() != 0 {
			t.Errorf("it is adopted: %v, %v; %v", err, set, w.lab.Journal())
		}
	}
	w := newWorld(t, "drifted")
	good := w.provisioned(w.user(""))
	w.none(w.users.Set(t.Context(), w.owner(), credential.Assignment{Record: credential.Record{
		Username: w.username(), Password: credential.NewPassword("changed-by-an-administrator"), Generation: good.Generation, Created: good.Created,
	}}))
	w.provisioned(w.user(""))
	w.none(w.login(w.username(), good.Password))
	w.leave() // It comes back into the group.
	w.provisioned(w.user(""))
	w.none(w.login(w.username(), good.Password))
}

// Quotas and duplicates are for a person, throttles and states pass, and nothing that AWS says about itself is
// taken for the absence of a user.
func TestErrorsAreToldByWhatTheyMean(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{
		"UserQuotaExceeded": elasticache.ErrQuota, "DuplicateUserName": elasticache.ErrDuplicate, "InvalidUserState": elasticache.ErrSettling,
		"UserAlreadyExists": elasticache.ErrSettling, "AccessDenied": elasticache.ErrDenied,
	} {
		w := newWorld(t, "errors")
		w.lab.Fail("CreateUser", awslab.Fault{Code: code, Message: "no"})
		_, err := w.provision(w.user(""))
		if !errors.Is(err, want) || credential.Blocked(err) || !strings.Contains(err.Error(), w.username()) {
			t.Errorf("%s: %v", code, err)
		}
	}
	for _, code := range []string{"AccessDenied", "Throttling", "InternalFailure", "ServiceLinkedRoleNotFoundFault"} {
		w := newWorld(t, "errors")
		w.lab.Fail("DescribeUsers", slices.Repeat([]awslab.Fault{{Code: code, Message: "no"}}, 9)...)
		_, err := w.provision(w.user(""))
		if err == nil || errors.Is(err, elasticache.ErrSettling) || w.lab.Writes() != 0 {
			t.Errorf("%s: %v; %v", code, err, w.lab.Journal())
		}
	}
	for _, takes := range []time.Duration{0, 20 * time.Millisecond} {
		w := newWorld(t, "lost", settle(takes, takes))
		w.losesAnswers()
	}
}

// losesAnswers shows that lost answers, which the SDK sends again, end as if they had come.
func (w *world) losesAnswers() {
	for _, action := range []string{"CreateUser", "ModifyUserGroup", "PutParameter"} {
		w.lab.Fail(action, awslab.Fault{Lost: true}, awslab.Fault{Code: "Throttling"})
	}
	got := w.provisioned(w.user(""))
	w.none(w.login(w.username(), got.Password))
	if got.Generation != 1 {
		w.Errorf("with lost answers: %+v", got)
	}
}

// A cache that does not answer has rejected no password, and a group that is not attached to a cache is an error.
func TestACacheThatIsAwayHasRefusedNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "away")
	good := w.provisioned(w.user(""))
	w.config.Endpoint = "127.0.0.1:1"
	w.users.Cache = w.open()
	w.lab.Forget()
	_, err := w.provision(w.user(""))
	if err == nil || credential.Blocked(err) || errors.Is(err, elasticache.ErrSettling) || w.lab.Writes() != 0 || strings.Contains(err.Error(), good.Password.Reveal()) {
		t.Errorf("it says %v; %v", err, w.lab.Journal())
	}
	detached := newWorld(t, "detached", func(o *awslab.Options) { o.Detached = []string{"tenants"} })
	if err := detached.users.Cache.Check(t.Context()); !errors.Is(err, elasticache.ErrNoGroup) {
		t.Errorf("the check of a group that is attached to no cache says %v", err)
	}
	detached.settles(func() error {
		if _, err := detached.provision(detached.user("")); !errors.Is(err, elasticache.ErrNoGroup) {
			return err
		}
		return nil
	})
	w.config.Groups = []string{"none"}
	if err := w.open().Check(t.Context()); !errors.Is(err, elasticache.ErrNoGroup) || !strings.Contains(err.Error(), "none") {
		t.Errorf("the check of a group that is not there says %v", err)
	}
	w.config.Groups = []string{"tenants"}
	w.none(w.open().Check(t.Context()))
}

// No password is in the SDK's log, whatever its log mode, or in an error, even if AWS quotes it.
func TestNoPasswordIsTold(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, "silent", func(config *aws.Config) {
		config.Logger = logging.NewStandardLogger(&log)
		config.ClientLogMode = aws.LogRequestWithBody | aws.LogResponseWithBody | aws.LogSigning | aws.LogRetries
	})
	first := w.provisioned(w.user(""))
	second := w.provisioned(w.user("r1"))
	const password = "a-password-that-is-quoted"
	w.lab.Fail("ModifyUser", awslab.Fault{Code: "InvalidParameterValue", Message: "not " + password})
	record := credential.Record{Username: w.username(), Password: credential.NewPassword(password), Generation: 3, Created: second.Created}
	err := w.users.Set(t.Context(), w.owner(), credential.Assignment{Record: record, Keep: true, Previous: second.Record})
	text := log.String() + fmt.Sprint(err)
	for _, secret := range []string{first.Password.Reveal(), second.Password.Reveal(), password} {
		if strings.Contains(text, secret) {
			t.Errorf("the output contains a password:\n%s", text)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "InvalidParameterValue") || !strings.Contains(log.String(), "POST") {
		t.Errorf("the error is %v, and the log %q", err, log.String())
	}
}
