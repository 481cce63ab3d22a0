// Package einmaltest runs an operator of package einmal in a test: against an API server in memory, in virtual time, in
// which a day takes milliseconds, and with everything that can go wrong around an operator.
//
// A Scenario is what users do in a World: they start an operator, create objects, change and delete them, and let time go
// by. Run plays it once. Explore plays it again and again, each time with something else that goes wrong: the process
// crashes before or after each of its requests, answers get lost, caches are stale, somebody else writes, bookkeeping is
// wiped, two replicas run; and compares how it ends. So a handler that does harm when it runs twice is found in a test
// and not in production:
//
//	func TestTenantsSurvive(t *testing.T) { einmaltest.Explore(t, lifeOfATenant) }
//
// A test that fails prints the shortest schedule that makes it fail and a command that plays just that.
//
// StartCluster gives a test a real control plane, for what a simulation cannot show.
package einmaltest
