package elasticache_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// The names of the apps of a tenant are found by the marks on their users: not those of another owner, nor of a tenant with a longer name.
func TestAppsAreFoundByTheMarksOnTheirUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "found")
	plant := func(app names.App, mark credential.Owner) {
		_, err := w.client.CreateUser(t.Context(), &sdk.CreateUserInput{
			UserId: aws.String(app.ElastiCacheUser()), UserName: aws.String(app.ElastiCacheUser()), Engine: aws.String("redis"),
			AccessString: aws.String("on ~x:* " + names.CacheMark(mark.String())), Passwords: []string{"a-password-of-a-test"},
		})
		w.none(err)
	}
	found := names.Tenant{Name: "found"}
	for _, app := range []names.App{found.App("web"), found.App("old-one"), names.Tenant{Name: "found-too"}.App("web")} {
		plant(app, ownerOf(app))
	}
	plant(found.App("foreign"), credential.Owner{Operator: "tenants.einmal.dev@other", Name: "found/foreign"})
	got, err := w.users.Cache.Apps(t.Context(), found, ownerOf)
	if want := []string{"old-one", "web"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	w.lab.Fail("DescribeUsers", awslab.Fault{Code: "AccessDenied"})
	if _, err := w.users.Cache.Apps(t.Context(), found, ownerOf); !errors.Is(err, elasticache.ErrDenied) {
		t.Errorf("without the right: %v", err)
	}
}

// A user cannot run scripts without the right. The right is written once.
func TestScriptingIsARightOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "scripts")
	got := w.provisioned(w.user(""))
	may := func(want bool) {
		t.Helper()
		client := node.Client(w.username(), got.Password.Reveal())
		defer func() { _ = client.Close() }()
		err := client.Do(t.Context(), "EVAL", "return 1", "0").Err()
		if denied := err != nil && strings.HasPrefix(err.Error(), "NOPERM"); denied == want {
			t.Errorf("EVAL: %v, to be allowed: %t", err, want)
		}
	}
	may(false)
	w.users.Access.Scripting = true
	w.provisioned(w.user(""))
	may(true)
	w.lab.Forget()
	w.provisioned(w.user(""))
	if w.lab.Writes() != 0 {
		t.Errorf("it is written again: %v", w.lab.Journal())
	}
}

// AWS attaches one user group to a cache. Users of another group cannot log in, so the check names it.
func TestASecondUserGroupIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "second", func(c *elasticache.Config) { c.Groups = []string{"attached", "other"} })
	err := w.users.Cache.Check(t.Context())
	if !errors.Is(err, elasticache.ErrNoGroup) || !strings.Contains(err.Error(), "user group other is not attached to a cache") || strings.Contains(err.Error(), "group attached ") {
		t.Errorf("two groups: %v", err)
	}
	w.config.Groups = []string{"attached"}
	w.none(w.open().Check(t.Context()))
}
