package main

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

const (
	// contestPeriod is how long the operator remembers that it has set a password again.
	contestPeriod = 10 * time.Minute
	// contestCount is from how many times on another client must be setting the password.
	contestCount = 2
)

// errContested means that another client sets the password of an app again and again.
var errContested = errors.New("another client sets the password again and again, so the app is rejected in between")

// counted adds to a status that a password was set again, if it was, and forgets what is long ago. The status keeps the count, so that it
// survives a restart.
func (f finding) counted(known v1.Principal, now time.Time) v1.Principal {
	if known.RestoredAt != nil && now.Sub(known.RestoredAt.Time) > contestPeriod {
		known.RestoredAt, known.Restorations = nil, 0
	}
	if f.outcome.Restored {
		known.RestoredAt = &metav1.Time{Time: now.Truncate(time.Second)}
		known.Restorations++
	}
	return known
}

// contest returns errContested if the password of an app was set again several times.
func (p *pass) contest(found finding) error {
	count := found.counted(principal(p.tenant, found), p.now).Restorations
	if count < contestCount {
		return nil
	}
	return fmt.Errorf("the password of user %s was set again %d times: %w; find what changes it, such as a trigger, a script or another operator, "+
		"or set driftPolicy: Report", found.outcome.Username, count, errContested)
}
