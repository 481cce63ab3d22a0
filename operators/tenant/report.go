package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// system is a system in which an app has a user.
type system string

const (
	database system = "database"
	caching  system = "cache"
)

// finding is the result for one app in one system.
type finding struct {
	app    string
	system system
	// record is the name of the credential in the store, readers the full name that readers use, and database the name of the database.
	record, readers, database string
	outcome                   credential.Outcome
	// err is why the app has no working credential. level is why limits or access are not in the desired state.
	err, level error
	// before is the generation that the status has, which readers got.
	before int
	// unwanted is true if the app is not in the spec any more and could not be removed.
	unwanted bool
}

// key identifies a finding within a tenant.
func (f finding) key() string { return f.app + "/" + string(f.system) }

// told reports whether the outcome is known. If some nodes of a cache do not answer, it is that of the others. Readers have the credential of an
// outcome also if what came before it could not be taken out of use.
func (f finding) told() bool {
	return f.err == nil || f.outcome.Generation > 0 && !errors.Is(f.err, credential.ErrDrifted)
}

// worst returns the error with the worse class.
func (f finding) worst() error {
	first, _ := classify(f.err)
	second, _ := classify(f.level)
	if second > first {
		return f.level
	}
	return f.err
}

// report is the result of a reconciliation.
type report struct {
	// suspended is true if nothing was checked because of spec.suspend, revoking if nothing was checked because a rotation in place is about to begin.
	// unusable is why nothing could be checked.
	suspended, revoking bool
	unusable            error
	findings            []finding
}

// principal returns the part of the status that a finding is about.
func principal(of *v1.Tenant, in finding) v1.Principal {
	for _, app := range of.Status.Apps {
		if app.Name != in.app {
			continue
		}
		known := app.Database
		if in.system == caching {
			known = app.Cache
		}
		if known != nil {
			return *known
		}
	}
	return v1.Principal{}
}

// after returns the new status of a finding. If the system could not be queried, the known values stay.
func (f finding) after(known v1.Principal, request string, now time.Time) v1.Principal {
	next := known
	next.Record, next.Database, next.Problem = f.readers, f.database, ""
	if f.unwanted {
		next.Record, next.Database = known.Record, known.Database
	}
	if err := f.worst(); err != nil {
		next.Problem = short(err)
	}
	next.MissingSince, next.MissingLooks = nil, 0
	if errors.Is(f.err, credential.ErrMissing) {
		missing := missed(known, now)
		next.MissingSince, next.MissingLooks = missing.MissingSince, missing.MissingLooks
	}
	if !f.told() {
		return next
	}
	next = f.counted(next, now)
	next.User, next.Generation, next.RequestID = f.outcome.Username, int32(f.outcome.Generation), f.outcome.Request //nolint:gosec // Rotations never exceed int32.
	next.WaitsFor, next.RetireAfter = "", nil
	if f.outcome.Waits {
		next.WaitsFor = request
	}
	if !f.outcome.Until.IsZero() {
		next.RetireAfter = &metav1.Time{Time: f.outcome.Until.Truncate(time.Second)}
	}
	if next.Generation != known.Generation {
		next.VerifiedAt = nil
	}
	if next.VerifiedAt == nil && f.outcome.Verified {
		next.VerifiedAt = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	return next
}

// apps returns the status of the apps in the order of the spec, followed by removed apps that still have something.
func (r report) apps(of *v1.Tenant, now time.Time) []v1.AppStatus {
	var all []v1.AppStatus
	at := map[string]int{}
	for _, app := range of.Spec.Apps {
		at[app.Name] = len(all)
		all = append(all, v1.AppStatus{Name: app.Name})
	}
	for _, found := range r.findings {
		i, is := at[found.app]
		if !is {
			i, at[found.app] = len(all), len(all)
			all = append(all, v1.AppStatus{Name: found.app})
		}
		next := found.after(principal(of, found), of.Spec.Credentials.Rotation.RequestID, now)
		if found.system == database {
			all[i].Database = &next
		} else {
			all[i].Cache = &next
		}
	}
	return all
}

// longestProblem limits the error that the status shows for one app, in bytes.
const longestProblem = 256

func short(err error) string {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD") // As the API server does.
	if len(text) <= longestProblem {
		return text
	}
	cut := longestProblem - len("...")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

// say returns an error with its app and system.
func (f finding) say(err error) string {
	return fmt.Sprintf("app %s, %s: %s", f.app, f.system, short(err))
}
