package report

import (
	"fmt"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What people see when handlers get into each other's way. One event reports all fields: client-go's correlator combines events that differ in
// their text alone.
const (
	conflictReason   = "StatusConflict"
	conflictSentence = "conflicting status writes by handlers; kept the value from %s: %s. " +
		"Let one handler write each field and declare it with OwnsStatus"
)

// shownFields is how many of the fields that a handler has changed are logged.
const shownFields = 3

// contradiction and ownEdit are what is reported once for a kind.
type (
	contradiction struct{ earlier, later, field string }
	ownEdit       struct{ by string }
)

// StatusConflict reports that a handler has overwritten fields that other handlers had set: each field once for the kind.
func (o Object) StatusConflict(by string, fields []journal.Overwritten) {
	var news []string
	for _, one := range fields {
		o.kind.Metrics.Contradiction(by, one.Earlier)
		if o.kind.Once(contradiction{one.Earlier, by, one.Field}) {
			o.Log.Warn("conflicting status writes by two handlers, the later value is kept",
				"field", one.Field, "earlier", one.Earlier, "later", by)
			news = append(news, fmt.Sprintf("%s (earlier value from %s)", one.Field, one.Earlier))
		}
	}
	if len(news) > 0 {
		o.warn(conflictReason, conflictSentence, by, strings.Join(news, ", "))
	}
}

// OwnEdit reports, once for the kind, that a handler changes its own object outside of the status. Tools that keep objects as they are in a
// repository can change it back.
func (o Object) OwnEdit(by string, fields []string) {
	if len(fields) > 0 && o.kind.Once(ownEdit{by}) {
		o.Log.Warn("handler changes its own object outside of the status, which can fight GitOps tools", "handler", by,
			"fields", fields[:min(len(fields), shownFields)])
	}
}

// ChangesRejected reports that the API server does not accept the changes of an attempt, and what that makes of the attempt.
// The reason is already redacted.
func (o Object) ChangesRejected(run handler.Run, result handler.Result, reason string) {
	o.kind.Metrics.Refused(run.ID)
	o.Log.Error("API server rejected changes of handler", "handler", run.ID, "reason", reason,
		"outcome", result.Outcome, "gaveUp", result.GaveUp)
	if result.Outcome == record.Failed {
		o.warnFailed(run, "the API server rejected the changes of the handler: "+reason)
	}
}

// ListContested reports that the changes of an attempt are not written, since another client has changed the same items of a list.
func (o Object) ListContested(run handler.Run, result handler.Result, list string) {
	o.Log.Warn("another client changed the same items of a list, changes of handler not written", "handler", run.ID,
		"field", list, "outcome", result.Outcome)
	if result.Outcome == record.Failed {
		o.warnFailed(run, result.Message)
	}
}
