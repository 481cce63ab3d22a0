package einmaltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// allowed is what a scenario allows at its end.
type allowed struct {
	unfinished []string
	everything bool // unfinished
	forbidden  bool
	deleting   bool
}

// AllowUnfinished lets the run end while handlers fail, wait for another call, or still run: those with these names, or all of them if none is
// given. Without it, Run and Explore fail then. A Reconcile that waits counts as finished: it looks again from time to time.
func (w *World) AllowUnfinished(handlers ...string) {
	w.allowed.unfinished = append(w.allowed.unfinished, handlers...)
	w.allowed.everything = w.allowed.everything || len(handlers) == 0
}

// AllowForbidden lets the operator send requests for which it has no right. Without it, Run and Explore fail then.
func (w *World) AllowForbidden() { w.allowed.forbidden = true }

// AllowDeleting lets the run end while objects are being deleted, such as those with finalizers of other controllers. Without it, Run and
// Explore fail then.
func (w *World) AllowDeleting() { w.allowed.deleting = true }

// AllowUnchecked lets objects of built-in kinds have fields that the API server in memory does not validate, such as
// "StatefulSet.spec.template.spec.affinity", with all that is below them. It refuses such fields otherwise, so that a test does not pass with what a
// real API server refuses. Call it before the first Start or Install. A path whose kind has no such fields fails the run.
func (w *World) AllowUnchecked(paths ...string) {
	w.Helper()
	if w.sim != nil {
		w.Fatal("AllowUnchecked: must be called before the first Start or Install")
	}
	w.setup.Unchecked = append(w.setup.Unchecked, paths...)
}

// FillNamespaces creates in each namespace what a real cluster creates there: the ConfigMap kube-root-ca.crt and the ServiceAccount default. Without it
// they are missing, so that a handler of ConfigMaps sees only those of the scenario. Call it before the first Start or Install.
func (w *World) FillNamespaces() {
	w.Helper()
	if w.sim != nil {
		w.Fatal("FillNamespaces: must be called before the first Start or Install")
	}
	w.setup.FillNamespaces = true
}

func (a allowed) handler(name string) bool {
	return a.everything || slices.Contains(a.unfinished, name)
}

// complaints returns what is wrong with a run without faults, beside what its scenario expects.
func (r result) complaints() []string {
	if len(r.failures) > 0 {
		return r.failures
	}
	return append(r.missingRights(), r.unfinished...)
}

func (r result) missingRights() []string {
	var missing []string
	for _, request := range r.forbidden {
		missing = append(missing, request+": the operator has no right to do this: declare it with einmal.Permissions or einmal.Applies, or allow it with World.AllowForbidden")
	}
	return missing
}

// unfinished lists what the run has left unfinished: handlers that do not succeed, and objects that are still being deleted. Calls are those before the
// operator was stopped, interrupted those that ended with it.
func (w *World) unfinished(calls, interrupted []declaration.Attempt) []string {
	found := grouped(w.unsuccessful(calls), w.stillRunning(interrupted))
	if !w.allowed.deleting {
		for _, name := range w.sim.Deleting() {
			found = append(found, name+": it is still being deleted at the end: remove what holds it, or allow it with World.AllowDeleting")
		}
	}
	return found
}

// unsuccessful lists the last attempts of handlers that have not succeeded, by handler and object.
func (w *World) unsuccessful(calls []declaration.Attempt) []complaint {
	last, succeeded, order := map[string]declaration.Attempt{}, map[string]bool{}, []string(nil)
	for _, call := range calls {
		name := call.Handler + " " + objectOf(call)
		if _, known := last[name]; !known {
			order = append(order, name)
		}
		last[name] = call
		succeeded[call.Handler] = succeeded[call.Handler] || call.Outcome == record.Done
	}
	var found []complaint
	for _, name := range order {
		call := last[name]
		lost := succeeded[call.Handler] && !w.sim.Exists(call.Kind, call.Object)
		if says := unfinishedAs(call); says != "" && !lost && !w.allowed.handler(call.Handler) {
			found = append(found, complaint{handler: call.Handler, says: says, object: fmt.Sprintf("%s, attempt %d", objectOf(call), call.Number)})
		}
	}
	return found
}

// stillRunning lists the attempts that ended only because the operator was stopped.
func (w *World) stillRunning(interrupted []declaration.Attempt) []complaint {
	var found []complaint
	for _, call := range interrupted {
		if call.Outcome == record.Pending && !w.allowed.handler(call.Handler) {
			found = append(found, complaint{handler: call.Handler, says: "it was still running at the end", object: objectOf(call)})
		}
	}
	return found
}

// complaint is a handler that is not finished with an object.
type complaint struct{ handler, says, object string }

// grouped makes one line of complaints about the same handler.
func grouped(lists ...[]complaint) []string {
	const some = 3
	objects, order := map[complaint][]string{}, []complaint(nil)
	for _, one := range slices.Concat(lists...) {
		group := complaint{handler: one.handler, says: one.says}
		if objects[group] == nil {
			order = append(order, group)
		}
		objects[group] = append(objects[group], one.object)
	}
	var lines []string
	for _, group := range order {
		named := objects[group]
		if left := len(named) - some; left > 0 {
			named = append(named[:some:some], fmt.Sprintf("%d more", left))
		}
		lines = append(lines, fmt.Sprintf("handler %s: %s, without any fault: %s. Let it succeed, or allow it with World.AllowUnfinished(%q)",
			group.handler, group.says, strings.Join(named, "; "), group.handler))
	}
	return lines
}

func objectOf(call declaration.Attempt) string {
	return call.Kind.Kind + " " + strings.TrimPrefix(call.Object.String(), "/")
}

// unfinishedAs says how the last attempt of a handler leaves it unfinished; "" if it does not.
func unfinishedAs(call declaration.Attempt) string {
	switch call.Outcome {
	case record.Retry:
		return "it still fails"
	case record.Waiting:
		if call.Reason == cause.Reconcile {
			return "" // It looks again from time to time.
		}
		return "it still waits for another call"
	case record.Failed:
		return "it has failed for good"
	default:
		return ""
	}
}

// sameAgain compares two runs without faults, which must be alike. It returns what differs.
func sameAgain(first, second result) []string {
	broken := slices.Concat(
		differences("what is left", first.objects, second.objects), differences("the outcome", first.outcomes, second.outcomes),
		differences("the number of effects", asTexts(first.effects), asTexts(second.effects)))
	if len(broken) == 0 {
		return nil
	}
	return append([]string{"two runs without faults differ: create all state inside the scenario, and use neither package-level variables, which " +
		"outlive a simulated crash, nor randomness"}, broken...)
}

func asTexts(counts map[string]int) map[string]string {
	texts := make(map[string]string, len(counts))
	for name, n := range counts {
		texts[name] = fmt.Sprint(n)
	}
	return texts
}

// steadyValues are the values in Secrets that two runs without faults agree on. The others are random.
func steadyValues(first, second result) map[string]string {
	steady := map[string]string{}
	for name, value := range first.secretDigests {
		if second.secretDigests[name] == value {
			steady[name] = value
		}
	}
	return steady
}

// failIfFaulty names a run without faults that is wrong.
func failIfFaulty(broken []string) *Finding {
	if len(broken) == 0 {
		return nil
	}
	return &Finding{Schedule: simulation.Schedule{}.String(), Broken: broken}
}
