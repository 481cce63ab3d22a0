package reconciler

import (
	"log/slog"
	"time"
)

// overdueMargin is how long after its timeout an attempt may take to return before it is logged.
const overdueMargin = 5 * time.Second

// watchOverdue logs an attempt that runs on although the timeout of its context has passed: the handler ignores its context, and blocks its object.
// The result stops the watch.
func watchOverdue(log *slog.Logger, timeout time.Duration) (stop func()) {
	started := time.Now()
	timer := time.AfterFunc(timeout+overdueMargin, func() {
		log.Warn("handler still runs after its timeout", "timeout", timeout.String(), "ran", time.Since(started).Round(time.Second).String(),
			"remedy", "return when the context ends, or raise einmal.AttemptTimeout")
	})
	return func() { timer.Stop() }
}
