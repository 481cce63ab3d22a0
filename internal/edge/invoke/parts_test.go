package invoke_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

// The failures of items are joined. As long as one of them can be retried, the handler is retried.
func TestPartsAreTriedAsLongAsOneHasSomethingLeftToTry(t *testing.T) {
	plain, never := errors.New("plain"), &invoke.PermanentError{Err: errors.New("never")}
	again := func(d time.Duration, err error) error { return &invoke.RetryAfterError{Delay: d, Err: err} }
	parts := func(all ...error) error { return fmt.Errorf("step: %w", &invoke.PartsError{Parts: all}) }
	backoff := invoke.Verdict{Outcome: record.Retry}
	named := func(outcome record.Outcome, d time.Duration) invoke.Verdict {
		return invoke.Verdict{Outcome: outcome, Delay: d, Asked: true}
	}
	for name, test := range map[string]struct {
		err  error
		want invoke.Verdict
	}{
		"one":                               {parts(plain), backoff},
		"all are final":                     {parts(never, never), invoke.Verdict{Outcome: record.Failed}},
		"one is not final":                  {parts(never, plain, never), backoff},
		"one is not final and names a time": {parts(never, again(time.Second, plain)), named(record.Retry, time.Second)},
		"all name a time":                   {parts(again(time.Minute, plain), again(time.Second, plain)), named(record.Retry, time.Second)},
		"one names a time":                  {parts(again(time.Minute, plain), plain), backoff},
		"all wait":                          {parts(again(time.Minute, nil), again(time.Second, nil)), named(record.Waiting, time.Second)},
		"one waits, one fails":              {parts(again(time.Minute, nil), plain), backoff},
		"one waits, one names a time":       {parts(again(time.Minute, nil), again(time.Hour, plain)), named(record.Retry, time.Minute)},
		"one waits, one is final":           {parts(again(time.Minute, nil), never), named(record.Waiting, time.Minute)},
		"parts of parts":                    {parts(parts(never), parts(never, plain)), backoff},
		"the handler's error is final":      {&invoke.PermanentError{Err: parts(plain)}, invoke.Verdict{Outcome: record.Failed}},
		"the handler names a time":          {again(time.Hour, parts(plain)), named(record.Retry, time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, invoke.Classify(test.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := parts(plain, never).Error(); got != "step: plain; never" {
		t.Errorf("the text is %q", got)
	}
}
