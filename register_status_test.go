package einmal_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Run reports two handlers that own the same status field, and owned fields that do not exist.
func TestMistakesInOwnedStatusComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	tenants := fixture.Tenants(op)
	tenants.OnCreate("one", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("phase", "conditions[Ready]", "endpoints"))
	tenants.OnUpdate("two", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("phase"))
	tenants.OnUpdate("all", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("conditions"))
	tenants.OnUpdate("item", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("endpoints[sql/5432]"))
	tenants.OnUpdate("fine", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("dbReady"), einmal.OwnsStatus("plan"))
	tenants.OnUpdate("none", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus())
	tenants.OnUpdate("no-path", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("a..b"))
	tenants.OnUpdate("too-long", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("status.redisReady"))
	tenants.OnUpdate("not-there", fixture.Nothing[fixture.Tenant], einmal.OwnsStatus("phrase"))
	free := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
	free.OnCreate("fine", fixture.Nothing[unstructured.Unstructured], einmal.OwnsStatus("whatever.comes", "status"))

	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`handler "two" of Tenant: option OwnsStatus: handler "one" already owns status.phase, which conflicts with status.phase: let one handler`,
		`handler "all" of Tenant: option OwnsStatus: handler "one" already owns status.conditions.Ready, which conflicts with status.conditions:`,
		`handler "item" of Tenant: option OwnsStatus: handler "one" already owns status.endpoints`,
		"handler none of Tenant: option OwnsStatus: must have at least one field of the status",
		"handler no-path of Tenant: option OwnsStatus: field path",
		"handler too-long of Tenant: option OwnsStatus: paths must start below the status, got status.redisReady: write it as redisReady",
		`handler "not-there" of Tenant: option OwnsStatus: field status.phrase`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if strings.Contains(err.Error(), "fine") {
		t.Error("a right declaration is reported")
	}
	if t.Failed() {
		t.Logf("told:\n%v", err)
	}
}
