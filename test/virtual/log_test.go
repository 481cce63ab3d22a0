package virtual_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// An error of a megabyte fills neither the log nor the event nor the record.
func TestALongErrorIsShortened(t *testing.T) {
	log := fixture.NewLog(t)
	long := "begin " + strings.Repeat("x", 1<<20) + " end"
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Log.With("with", long).Info(long, "text", long, //nolint:sloglint // As handlers may do it.
				"list", []string{long}, slog.Group("in", "error", errors.New(long)))
			return einmal.Permanent(errors.New(long))
		})
	}, func(t *testing.T, w *virtualWorld) {
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewRedWidget("one")))
		w.Pass(time.Minute)
		for _, message := range events(t, w, "HandlerFailed") {
			if len(message) > 1024 || !strings.HasSuffix(message, " end") {
				t.Errorf("the event has %d bytes: %.40s", len(message), message)
			}
		}
	})
	const limit = 6 * 8192
	for line := range strings.Lines(log.String()) {
		if len(line) > limit {
			t.Errorf("a line has %d bytes: %.200s", len(line), line)
		}
	}
	fixture.ExpectLine(t, log, "msg~begin xxx", "msg~xxx end", "with~xxx end", "text~xxx end", "in.error~xxx end")
	fixture.ExpectLine(t, log, "msg~handler failed permanently", "error~begin xxx", "error~xxx end")
}
