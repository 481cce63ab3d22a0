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

// A programming error counts, whatever else the handler returns with it.
func TestAProgrammingErrorTakesPrecedence(t *testing.T) {
	wrong := fmt.Errorf("step: %w", &invoke.ProgrammingError{Err: errors.New("wrong")})
	for name, err := range map[string]error{
		"alone":                wrong,
		"final":                &invoke.PermanentError{Err: wrong},
		"beside a final error": errors.Join(&invoke.PermanentError{Err: errors.New("never")}, wrong),
		"beside a wait":        errors.Join(&invoke.RetryAfterError{Delay: time.Hour}, wrong),
		"in one of the parts":  &invoke.PartsError{Parts: []error{errors.New("plain"), wrong}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(invoke.Verdict{Outcome: record.Retry, Broken: true}, invoke.Classify(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
