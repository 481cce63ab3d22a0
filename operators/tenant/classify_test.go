package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/operators/tenant/postgres"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// docs/operators/tenant.md, "Conditions and reasons": each reason that an error can have is explained there.
func TestEachReasonIsExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/operators/tenant.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := []string{reasonSuspected, reasonUnknown}
	for _, known := range meanings() {
		reasons = append(reasons, known.reason)
	}
	for _, reason := range reasons {
		if !strings.Contains(string(page), "\n| `"+reason+"` | ") {
			t.Errorf("the page does not say what %s means", reason)
		}
	}
}

// docs/operators/tenant.md, reason UnsupportedVersion: a server that is too old waits for a person, and is not tried again as one that is down.
func TestAServerThatIsTooOldWaitsForAPerson(t *testing.T) {
	for _, old := range []error{postgres.ErrVersion, redis.ErrVersion} {
		if how, reason := classify(fmt.Errorf("spec: %w", old)); how != blocked || reason != "UnsupportedVersion" {
			t.Errorf("%v is %d, %s", old, how, reason)
		}
	}
}
