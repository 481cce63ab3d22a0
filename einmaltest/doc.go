// Package einmaltest runs an operator of package einmal in a test: against an API server in memory, in virtual time, in
// which a day takes milliseconds, and with everything that can go wrong around an operator.
//
// A Scenario is what users do in a World: they start an operator, create objects, change and delete them, and let time go
// by. Run plays it once. Explore plays it again and again, each time with another fault, and compares how it ends. The process crashes or is
// updated, requests are refused, get no answer or hang, the API server is away or restored from a backup, watch events come late or twice, users
// and other operators write, records are wiped, clocks jump, and several replicas run: see Dimension. So a test finds a handler that does harm when
// it runs twice:
//
//	func TestTenantsSurvive(t *testing.T) { einmaltest.Explore(t, lifeOfATenant) }
//
// A test that fails prints the shortest schedule that makes it fail and a command that plays just that.
//
// StartCluster gives a test a real control plane, for what a simulation cannot show.
package einmaltest
