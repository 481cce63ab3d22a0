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

// system is where an app has something.
type system string

const (
	database system = "database"
	caching  system = "cache"
)

// finding is what came of what an app has in one system.
type finding struct {
	app    string
	system system
	// record is where the store has the credential, readers where readers find it, and database the name of the database.
	record, readers, database string
	outcome                   credential.Outcome
	// scripting says whether a user of the cache may run scripts.
	scripting v1.Scripting
	// err is what kept the app from having it, level what kept the plan's limits or the access from being so.
	err, level error
	// unwanted tells that the app does not ask for it any more, and that it could not be removed.
	unwanted bool
}

// key tells findings of a tenant apart.
func (f finding) key() string { return f.app + "/" + string(f.system) }

// worst is the worst that is wrong.
func (f finding) worst() error {
	first, _ := classify(f.err)
	second, _ := classify(f.level)
	if second > first {
		return f.level
	}
	return f.err
}

// report is what came of a pass.
type report struct {
	// suspended tells that nothing was looked at, unusable why nothing could be.
	suspended bool
	unusable  error
	findings  []finding
}

// principal is what the status knows of what a finding is about.
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

// after is what the status is to say of a finding. Where a system could not be asked, what was known stays.
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
	if f.err != nil {
		return next
	}
	next.User, next.Generation, next.RequestID = f.outcome.Username, int32(f.outcome.Generation), f.outcome.Request //nolint:gosec // It counts rotations.
	next.WaitsFor, next.RetireAfter, next.Scripting = "", nil, f.scripting
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

// apps is what the status is to say of the apps, in their order, and then of those that are not asked for any more and still there.
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

// longestProblem is how much of an error the status shows for one app, in bytes.
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

// say is an error with the app that it is about.
func (f finding) say(err error) string {
	return fmt.Sprintf("app %s, %s: %s", f.app, f.system, short(err))
}
