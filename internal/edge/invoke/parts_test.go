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

// Design §4: the failures of items are joined. As long as one has something left to try, the handler is tried again.
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
		"one":                            {parts(plain), backoff},
		"all are final":                  {parts(never, never), invoke.Verdict{Outcome: record.Failed}},
		"one is not final":               {parts(never, plain, never), backoff},
		"one is not final, it has asked": {parts(never, again(time.Second, plain)), named(record.Retry, time.Second)},
		"all have asked":                 {parts(again(time.Minute, plain), again(time.Second, plain)), named(record.Retry, time.Second)},
		"one has asked":                  {parts(again(time.Minute, plain), plain), backoff},
		"all wait":                       {parts(again(time.Minute, nil), again(time.Second, nil)), named(record.Waiting, time.Second)},
		"one waits, one has failed":      {parts(again(time.Minute, nil), plain), backoff},
		"one waits, one has asked":       {parts(again(time.Minute, nil), again(time.Hour, plain)), named(record.Retry, time.Minute)},
		"one waits, one is final":        {parts(again(time.Minute, nil), never), named(record.Waiting, time.Minute)},
		"parts of parts":                 {parts(parts(never), parts(never, plain)), backoff},
		"the handler says never":         {&invoke.PermanentError{Err: parts(plain)}, invoke.Verdict{Outcome: record.Failed}},
		"the handler names a time":       {again(time.Hour, parts(plain)), named(record.Retry, time.Hour)},
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
