package simulation

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/declaration"
)

// noteAttempt keeps in mind which attempts are running.
func (p *Process) noteAttempt(attempt declaration.Attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := attempt.Outcome != ""
	attempt.Outcome, attempt.Number = "", 0
	if delete(p.running, attempt); !ended {
		p.running[attempt] = true
	}
}

// attemptsAt returns the running attempts that may have come to a point. The context of a request names the handler; effects have none. If several
// objects are being handled and the point names some of them, only their attempts are returned.
func (p *Process) attemptsAt(what string) []declaration.Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := ""
	if !isEffect(what) {
		_, by, _ = strings.Cut(what, byHandler)
	}
	var all, named []declaration.Attempt
	for attempt := range p.running {
		if by != "" && by != attempt.Handler {
			continue
		}
		all = append(all, attempt)
		if regexp.MustCompile(`\b` + regexp.QuoteMeta(attempt.Object.Name) + `\b`).MatchString(what) {
			named = append(named, attempt)
		}
	}
	if len(objectsOf(all)) > 1 && len(named) > 0 {
		return named
	}
	return all
}

// objectsOf returns the objects that attempts handle, with their kinds.
func objectsOf(attempts []declaration.Attempt) map[types.NamespacedName]schema.GroupVersionKind {
	objects := map[types.NamespacedName]schema.GroupVersionKind{}
	for _, attempt := range attempts {
		objects[attempt.Object] = attempt.Kind
	}
	return objects
}

// handledAt returns the object whose handler has come to a point, nil if that is not clear.
func (p *Process) handledAt(what string) *unstructured.Unstructured {
	candidates := objectsOf(p.attemptsAt(what))
	if len(candidates) != 1 {
		return nil
	}
	found := &unstructured.Unstructured{}
	for object, kind := range candidates {
		found.SetGroupVersionKind(kind)
		found.SetNamespace(object.Namespace)
		found.SetName(object.Name)
	}
	return found
}
