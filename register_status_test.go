package einmal_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
)

// Run reports two handlers that own the same status field, and owned fields that do not exist.
func TestMistakesInOwnedStatusComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(addTestKinds))
	tenants := forTenants(op)
	tenants.OnCreate("one", nothing[Tenant], einmal.OwnsStatus("phase", "conditions[Ready]", "endpoints"))
	tenants.OnUpdate("two", nothing[Tenant], einmal.OwnsStatus("phase"))
	tenants.OnUpdate("all", nothing[Tenant], einmal.OwnsStatus("conditions"))
	tenants.OnUpdate("item", nothing[Tenant], einmal.OwnsStatus("endpoints[sql/5432]"))
	tenants.OnUpdate("fine", nothing[Tenant], einmal.OwnsStatus("dbReady"), einmal.OwnsStatus("plan"))
	tenants.OnUpdate("none", nothing[Tenant], einmal.OwnsStatus())
	tenants.OnUpdate("no-path", nothing[Tenant], einmal.OwnsStatus("a..b"))
	tenants.OnUpdate("too-long", nothing[Tenant], einmal.OwnsStatus("status.redisReady"))
	tenants.OnUpdate("not-there", nothing[Tenant], einmal.OwnsStatus("phrase"))
	free := einmal.For[unstructured.Unstructured](op, einmal.GVK(testGroup, "v1", "Gadget"))
	free.OnCreate("fine", nothing[unstructured.Unstructured], einmal.OwnsStatus("whatever.comes", "status"))

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
