package einmal

import (
	"fmt"
)

// checkFormer returns errors for former ids that do not identify exactly one handler.
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
				found = append(found, fmt.Errorf("%s: %q is not a valid id: use the id that an earlier release declared", where, former))
			case taken:
				found = append(found, fmt.Errorf("%s: %q is already the id of handler %q; a record belongs to one handler, so leave it out or rename that handler", where, former, holder))
			}
			holders[former] = declared.ID
		}
	}
	return found
}
