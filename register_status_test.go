package einmal_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
)

// Design §8: two handlers that own the same field of the status are a mistake at the start, as are fields that are not there.
func TestMistakesInOwnedStatusComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(addTestKinds), einmal.OwnsStatus("phase"))
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
	tenants.OnEvent("watch", nothing[Tenant], einmal.OwnsStatus("lastError"))
	free := einmal.For[unstructured.Unstructured](op, einmal.GVK(testGroup, "v1", "Gadget"))
	free.OnCreate("fine", nothing[unstructured.Unstructured], einmal.OwnsStatus("whatever.comes", "status"))

	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"option OwnsStatus does not belong to New",
		`handler "two" of Tenant: option OwnsStatus: handler "one" owns status.phase already, and this one wants status.phase: let one of them`,
		`handler "all" of Tenant: option OwnsStatus: handler "one" owns status.conditions.Ready already, and this one wants status.conditions:`,
		`handler "item" of Tenant: option OwnsStatus: handler "one" owns status.endpoints already`,
		"handler none of Tenant: option OwnsStatus: it names no field",
		"handler no-path of Tenant: option OwnsStatus: field path",
		"handler too-long of Tenant: option OwnsStatus: status.redisReady: paths begin below the status: write it as redisReady",
		`handler "not-there" of Tenant: option OwnsStatus: status.phrase`,
		`handler "watch" of Tenant: option OwnsStatus: an event handler changes nothing`,
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
