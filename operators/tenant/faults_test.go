package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/einmal-operators/einmal/awslab"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// TestWhatGoesWrongIsToldAndNothingIsLost lets one thing after the other go wrong, in the database, the cache and AWS: see
// The tests in this file let systems fail, and count what the operator does then.
func TestWhatGoesWrongIsToldAndNothingIsLost(t *testing.T) {
	t.Parallel()
	s := startLab(t, settling())
	running := s.start(t)
	s.Kubectl(t, s.manifest("acme", ", credentials: {probeInterval: 10s}"), "apply", "-f", "-")
	s.awaitPhase(t, "acme", v1.Ready)

	t.Run("a database that is down", s.databaseDown)
	t.Run("a cache that is down", s.cacheDown)
	t.Run("a storm of throttles", s.throttled)
	t.Run("a right that is missing generates nothing", s.denied)
	t.Run("lost answers", s.lostAnswers)
	t.Run("users that take long", s.slowUsers)
	t.Run("a quota", s.quota)
	t.Run("tenants reach nothing of each other", s.apart)
	t.Run("a deletion takes back all of it", s.deleted)
	running.Stop(t)
	t.Run("two operators at the same time", s.twoOperators)
	s.onceEach(t)
}

// condition is the reason of a condition, and its status in front.
func condition(of *v1.Tenant, name string) string {
	found := meta.FindStatusCondition(of.Status.Conditions, name)
	if found == nil {
		return "none"
	}
	return string(found.Status) + " " + found.Reason
}

func (s *stage) databaseDown(t *testing.T) {
	if err := s.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	down := s.await(t, "acme", "without its database", func(of *v1.Tenant) bool { return condition(of, v1.ConditionDatabaseReady) == "Unknown Unreachable" })
	if down.Status.Phase != v1.Degraded || !down.Status.DBReady || !down.Status.RedisReady || condition(down, v1.ConditionCacheReady) != "True Accepted" {
		t.Errorf("while the database is down: %+v", down.Status)
	}
	if err := s.postgres.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.touch(t, "the database is back")
	s.awaitPhase(t, "acme", v1.Ready)
	s.works(t, "acme")
}

func (s *stage) cacheDown(t *testing.T) {
	if err := s.redis.Stop(); err != nil {
		t.Fatal(err)
	}
	s.await(t, "acme", "without its cache", func(of *v1.Tenant) bool {
		return of.Status.Phase == v1.Degraded && of.Status.RedisReady && condition(of, v1.ConditionDatabaseReady) == "True Accepted"
	})
	if err := s.redis.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.lab.Restore(); err != nil { // A new node has all users.
		t.Fatal(err)
	}
	s.touch(t, "the cache is back")
	s.awaitPhase(t, "acme", v1.Ready)
	s.works(t, "acme")
}

// throttled throttles each call a few times: the pauses of the SDK, which it draws by lot, are 25 s at most in all.
func (s *stage) throttled(t *testing.T) {
	for action, times := range map[string]int{"GetParameters": 3, "PutParameter": 2, "CreateUser": 2, "DescribeUsers": 2, "ModifyUserGroup": 2} {
		s.lab.Fail(action, slices.Repeat([]awslab.Fault{{Code: "ThrottlingException"}}, times)...)
	}
	s.lab.Fail("PutParameter", awslab.Fault{Code: "TooManyUpdates"})
	s.Kubectl(t, s.manifest("busy", ""), "apply", "-f", "-")
	s.awaitPhase(t, "busy", v1.Ready)
	s.works(t, "busy")
}

func (s *stage) denied(t *testing.T) {
	s.lab.Fail("GetParameters", slices.Repeat([]awslab.Fault{{Code: "AccessDeniedException", Resource: ""}}, 6)...)
	s.Kubectl(t, s.manifest("denied", ""), "apply", "-f", "-")
	s.await(t, "denied", "told so", func(of *v1.Tenant) bool { return condition(of, v1.ConditionCredentialsReady) == "Unknown Unreachable" })
	for _, call := range s.lab.Journal() {
		if call.Action == "PutParameter" && strings.Contains(call.Resource, "/denied/") {
			t.Errorf("it generates although it cannot look: %+v", call)
		}
	}
	if user := (names.App{Tenant: "denied", Name: "web"}).Logins()[0]; slices.Contains(s.roles(t), user) {
		t.Error("a login is made without a credential")
	}
	s.lab.Heal()
	s.awaitPhase(t, "denied", v1.Ready)
	s.works(t, "denied")
}

func (s *stage) lostAnswers(t *testing.T) {
	for _, action := range []string{"PutParameter", "CreateUser", "ModifyUserGroup"} {
		s.lab.Fail(action, awslab.Fault{Lost: true})
	}
	s.Kubectl(t, s.manifest("lost", ""), "apply", "-f", "-")
	s.awaitPhase(t, "lost", v1.Ready)
	s.works(t, "lost")
	s.lab.Heal()
}

func (s *stage) slowUsers(t *testing.T) {
	s.lab.Adjust(func(options *awslab.Options) { options.Users = 8 * time.Second })
	s.Kubectl(t, s.manifest("slow", ""), "apply", "-f", "-")
	waits := s.awaitPhase(t, "slow", v1.Provisioning)
	if condition(waits, v1.ConditionCacheReady) != "False Settling" || condition(waits, v1.ConditionDatabaseReady) != "True Accepted" {
		t.Errorf("while a user is creating: %+v", waits.Status)
	}
	s.awaitPhase(t, "slow", v1.Ready)
	s.lab.Adjust(func(options *awslab.Options) { options.Users = settling().Users })
	s.works(t, "slow")
}

func (s *stage) quota(t *testing.T) {
	s.lab.Adjust(func(options *awslab.Options) { options.MaxUsers = 1 })
	s.Kubectl(t, s.manifest("quota", ", credentials: {probeInterval: 10s}"), "apply", "-f", "-")
	full := s.awaitPhase(t, "quota", v1.Blocked)
	if condition(full, v1.ConditionReady) != "False QuotaExceeded" || !full.Status.DBReady || full.Status.RedisReady {
		t.Errorf("where there is no room: %+v", full.Status)
	}
	s.lab.Adjust(func(options *awslab.Options) { options.MaxUsers = 1000 })
	s.awaitPhase(t, "quota", v1.Ready) // It recovers without a change.
	s.works(t, "quota")
}

// apart shows that a tenant cannot reach the database, the tables or the keys of another, nor become it.
func (s *stage) apart(t *testing.T) {
	mine, cache := s.credentials(t, "acme")
	theirs, _ := s.credentials(t, "busy")
	if err := s.logIn(t, "busy", theirs, "CREATE TABLE hidden (x int)", "INSERT INTO hidden VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := s.logIn(t, "busy", mine, "SELECT * FROM hidden"); err == nil {
		t.Error("acme reads a table of busy")
	}
	other := names.Tenant{Name: "busy"}
	for _, statement := range []string{"SET ROLE " + other.Owner(), "SET ROLE " + other.App("web").Logins()[0], "ALTER ROLE " + other.Owner() + " LOGIN"} {
		if err := s.logIn(t, "acme", mine, statement); err == nil {
			t.Errorf("acme may %s", statement)
		}
	}
	if err := s.authenticate(t, cache, "busy:greeting"); err == nil {
		t.Error("acme writes a key of busy")
	}
	var super bool
	s.query(t, &super, "SELECT bool_or(rolsuper) FROM pg_roles WHERE rolname LIKE 't\\_%' OR rolcreaterole AND NOT rolsuper")
	if super {
		t.Error("the admin, or a tenant, is a superuser")
	}
}

func (s *stage) deleted(t *testing.T) {
	s.Kubectl(t, s.manifest("busy", ", deletionPolicy: Delete, dropOwned: true"), "apply", "-f", "-")
	s.awaitPhase(t, "busy", v1.Ready)
	s.Kubectl(t, "", "delete", "tenant", "busy", "--timeout=60s")
	for _, role := range s.roles(t) {
		if strings.HasPrefix(role, "t_busy") {
			t.Errorf("the role %s is left", role)
		}
	}
	if slices.ContainsFunc(s.users(t), func(name string) bool { return strings.HasPrefix(name, "t-busy") }) {
		t.Error("the user of the cache is left")
	}
	of := names.Tenant{Name: "busy"}.App("web")
	for _, name := range []string{labPrefix + "/" + of.DatabaseRecord(), labPrefix + "/" + of.CacheRecord(), labPrefix + "/" + of.DatabaseRecord() + "/g1"} {
		if _, err := s.parameters.GetParameter(t.Context(), &awsssm.GetParameterInput{Name: &name}); err == nil {
			t.Errorf("the parameter %s is left", name)
		}
	}
}

// twoOperators runs two processes without leader election.
func (s *stage) twoOperators(t *testing.T) {
	first, second := s.start(t), s.start(t)
	for i := range 5 {
		s.Kubectl(t, s.manifest(fmt.Sprint("twice", i), ""), "apply", "-f", "-")
	}
	for i := range 5 {
		s.awaitPhase(t, fmt.Sprint("twice", i), v1.Ready)
	}
	first.Stop(t)
	second.Stop(t)
	for i := range 5 {
		s.works(t, fmt.Sprint("twice", i))
	}
}

// onceEach shows that each credential was stored once, and is the first one, in all that has happened.
func (s *stage) onceEach(t *testing.T) {
	t.Helper()
	stored := map[string]int{}
	for _, call := range s.lab.Journal() {
		if call.Action != "PutParameter" || !strings.Contains(call.Resource, "/g") {
			continue
		}
		if !strings.HasSuffix(call.Resource, "/g1") {
			t.Errorf("another generation is stored: %+v", call)
		}
		if call.Code == "" {
			stored[call.Resource]++
		}
	}
	if len(stored) < 20 {
		t.Errorf("only %d credentials were stored", len(stored))
	}
	for name, times := range stored {
		if times != 1 {
			t.Errorf("%s was stored %d times", name, times)
		}
	}
}

// A credential counts as missing only after three checks over at least a minute.
func TestACredentialIsMissingAfterThreeLooksInAMinute(t *testing.T) {
	t.Parallel()
	var seen v1.Principal
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for i, want := range []bool{false, false, false, true} {
		now := start.Add(time.Duration(i) * 25 * time.Second)
		if seen = missed(seen, now); staysMissing(seen, now) != want {
			t.Errorf("look %d: %t, want %t", i+1, !want, want)
		}
	}
	for _, forgotten := range []error{nil, errors.New("the store does not answer")} {
		if after := (finding{err: forgotten}).after(seen, "", start); after.MissingSince != nil || after.MissingLooks != 0 {
			t.Errorf("after %v it is missing since %v", forgotten, after.MissingSince)
		}
	}
	if how, reason := classify(fmt.Errorf("app web: %w", suspected{errors.New("none")})); how != waiting || reason != reasonSuspected {
		t.Errorf("until then it is %d %s", how, reason)
	}
}
