package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// The API server rejects a status with a condition message above 32768 bytes (metav1.Condition). So if many apps have errors, the message
// contains some of them and the number of the others.
func TestTheTroubleOfManyAppsHasRoomInTheStatus(t *testing.T) {
	t.Parallel()
	var found report
	for i := range 64 { // As many as a tenant has, and as many that were taken out and cannot be removed.
		for _, in := range []system{database, caching} {
			err := errors.New(strings.Repeat("it does not answer ", 30))
			found.findings = append(found.findings, finding{app: fmt.Sprint("app-", i), system: in, err: err, unwanted: i >= 32})
		}
	}
	conditions, _ := found.judge(&v1.Tenant{})
	for _, one := range conditions {
		if len(one.Message) > 8192 {
			t.Errorf("%s has %d bytes", one.Type, len(one.Message))
		}
		if one.Type == v1.ConditionReady && (!strings.HasPrefix(one.Message, "app app-0, database: it does not") || !strings.HasSuffix(one.Message, " more")) {
			t.Errorf("it says %q", one.Message)
		}
	}
}
