package einmal_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
)

// testLog collects a log and shows it when the test has failed.
func testLog(t *testing.T) *syncedText {
	t.Helper()
	log := &syncedText{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the operator's log:\n%s", log)
		}
	})
	return log
}

// An error of a megabyte fills neither the log nor the event nor the record.
func TestALongErrorIsShortened(t *testing.T) {
	log := testLog(t)
	long := "begin " + strings.Repeat("x", 1<<20) + " end"
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[Widget]) error {
			c.Log.With("with", long).Info(long, "text", long, //nolint:sloglint // As handlers may do it.
				"list", []string{long}, slog.Group("in", "error", errors.New(long)))
			return einmal.Permanent(errors.New(long))
		})
	}, func(t *testing.T, w *virtualWorld) {
		must(t, w.User.Create(t.Context(), widget("one")))
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
	tells(t, log, "msg~begin xxx", "msg~xxx end", "with~xxx end", "text~xxx end", "in.error~xxx end")
	tells(t, log, "msg~handler failed permanently", "error~begin xxx", "error~xxx end")
}

type syncedText struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends to the text.
func (s *syncedText) Write(part []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(part)
}

// String is all that was written.
func (s *syncedText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// lines counts the lines of the log that have all of these attributes. "key=value" is an attribute with this value, "key~part" one with a
// value that contains the part.
func (s *syncedText) lines(attributes ...string) int {
	n := 0
	for line := range strings.Lines(s.String()) {
		has, all := attributesOf(line), true
		for _, attribute := range attributes {
			all = all && has.match(attribute)
		}
		if all {
			n++
		}
	}
	return n
}

// tells checks that the log has one line with all of these attributes.
func tells(t *testing.T, log *syncedText, attributes ...string) {
	t.Helper()
	if n := log.lines(attributes...); n != 1 {
		t.Errorf("%q is logged %d times, want once", attributes, n)
	}
}

// logged are the attributes of one line of a log, by key.
type logged map[string]string

// attributesOf reads a line of slog.TextHandler. A line of another form has none.
func attributesOf(line string) logged {
	found := logged{}
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, isAttribute := strings.Cut(rest, "=")
		if !isAttribute {
			return found
		}
		if quoted, err := strconv.QuotedPrefix(after); err == nil {
			found[key], _ = strconv.Unquote(quoted)
			rest = after[len(quoted):]
			continue
		}
		found[key], rest, _ = strings.Cut(after, " ")
	}
	return found
}

func (l logged) match(attribute string) bool {
	at := strings.IndexAny(attribute, "=~")
	key, want := attribute[:at], attribute[at+1:]
	value, has := l[key]
	return has && (value == want || attribute[at] == '~' && strings.Contains(value, want))
}

func TestAttributesOfALogLine(t *testing.T) {
	got := attributesOf(`time=2000-01-01T00:00:00.000Z level=ERROR msg="handler failed" error="open \"a=b\": no" known=[one] empty=""` + "\n")
	want := logged{
		"time": "2000-01-01T00:00:00.000Z", "level": "ERROR", "msg": "handler failed", "error": `open "a=b": no`, "known": "[one]", "empty": "",
	}
	if !maps.Equal(got, want) {
		t.Errorf("attributes: %q", got)
	}
	for attribute, matches := range map[string]bool{
		"level=ERROR": true, "level=ERR": false, "level~ERR": true, "msg~failed": true, "error~a=b": true, "object=x": false,
	} {
		if got.match(attribute) != matches {
			t.Errorf("%s matches: %t", attribute, !matches)
		}
	}
}
