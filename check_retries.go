package einmal

import (
	"errors"
	"fmt"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/engine"
)

// misplacedAt finds options of retries that mean nothing for a verb.
func (s retrySettings) misplacedAt(verb cause.Cause) []error {
	var found []error
	if s.releases && verb != cause.Delete {
		found = append(found, errors.New("option ReleaseOnFailure: only delete handlers keep objects; leave it out"))
	}
	if s.limits != (handler.Limits{}) && verb == engine.Event {
		found = append(found, errors.New("options of retries: an event handler is called once; leave them out, or use Reconcile"))
	}
	if len(s.former) > 0 && (verb == engine.Event || verb == cause.Reconcile || verb == cause.Timer || verb == cause.Daemon) {
		found = append(found, errors.New("option FormerlyKnownAs: nothing of this handler is recorded; leave it out"))
	}
	return found
}

// checkFormer finds former ids that do not lead to one handler.
func (d *declaredKind) checkFormer() []error {
	holders := map[string]string{}
	for _, declared := range d.handlers() {
		holders[declared.ID] = declared.ID
	}
	var found []error
	for _, declared := range d.handlers() {
		for _, former := range declared.Former {
			where := fmt.Sprintf("handler %q of %s: option FormerlyKnownAs", declared.ID, d.kind.GVK.Kind)
			holder, taken := holders[former]
			switch {
			case checkID(former) != nil:
				found = append(found, fmt.Errorf("%s: %q was never an id; give the one that an earlier release declared", where, former))
			case taken:
				found = append(found, fmt.Errorf("%s: %q is the id of handler %q already; a record can go to one handler, so leave it out or rename that one", where, former, holder))
			}
			holders[former] = declared.ID
		}
	}
	return found
}
