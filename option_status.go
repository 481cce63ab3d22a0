package einmal

import (
	"errors"
	"fmt"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// statusField is the field that contains the status.
const statusField = "status"

// OwnsStatus makes a handler the only writer of these fields of the status, and of everything below them. Paths start
// below the status: OwnsStatus("phase", "database.ready"). Name a condition by its type, and an item of any list with
// keys by its key: OwnsStatus("conditions[Ready]"). OwnsStatus("conditions") covers all conditions.
//
// Run returns an error if two handlers own the same field, or one owns a field below that of the other. If another
// handler changes the field on its copy, its attempt fails with an error that names both handlers, and none of its
// changes is written. It is a programming error, which this process does not retry. A field that the schema does not have is reported when the operator starts. Writes of other
// clients are not checked.
//
// By default, nothing owns a field. If two handlers then set it differently in one reconciliation, the later one wins,
// and Einmal warns about it.
func OwnsStatus(paths ...string) HandlerOption {
	return option{name: "OwnsStatus", handler: func(settings *handlerSettings) error {
		if len(paths) == 0 {
			return errors.New("option OwnsStatus: must have at least one field of the status, such as phase, got none")
		}
		for _, text := range paths {
			path, err := object.ParsePath(text)
			if err != nil {
				return fmt.Errorf("option OwnsStatus: %w", err)
			}
			if len(path) > 1 && path[0] == statusField {
				return fmt.Errorf("option OwnsStatus: paths must start below the status, got %s: write it as %s", text, path[1:])
			}
			settings.owns = append(settings.owns, append(object.Path{statusField}, path...))
		}
		return nil
	}}
}
