package credentialtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// SystemSubject is a system under test. System, Owner, Username and Accepts are required.
type SystemSubject struct {
	// System is the system under test. It has no users with these usernames.
	System credential.Rotator
	// Owner is the owner of the users.
	Owner credential.Owner
	// Username and Alternate are the users of a credential, as in credential.Once. Alternate is "" if a user can have two passwords.
	Username, Alternate string
	// Accepts reports whether a login with a credential works now. It must not use the System.
	Accepts func(t *testing.T, record credential.Record) bool
	// Admit completes a user after Create, if the system lets new users log in only after another step, such as a user group. It is nil if there is none.
	Admit func(ctx context.Context, username string) error
	// HoldLogins does with a credential what its holder can do to make each login fail or hang. It is nil if a holder can do nothing of that kind.
	HoldLogins func(t *testing.T, record credential.Record)
}

// The limits of SystemContract. A System can return errors while a change settles.
const (
	settlesWithin = 30 * time.Second
	settlePause   = 50 * time.Millisecond
	// revokesWithin is how long the holder of a revoked credential may delay each step of the revocation.
	revokesWithin = 10 * time.Second
)

// SystemContract runs the tests that every credential.Rotator must pass, so that credential.User keeps its promises: no other owner changes a user, no
// older credential replaces a later one, and the holder of a credential cannot delay its revocation. It runs them in parallel, and calls subject once
// for each of them.
func SystemContract(t *testing.T, subject func(t *testing.T) SystemSubject) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s SystemSubject){
		"a user is created once":                   createsOnce,
		"another owner changes nothing":            refusesOthers,
		"an older credential is not set":           keepsLatest,
		"a rotation overlaps until Retire":         overlapsUntilRetire,
		"the holder of a credential delays no Set": setsWithoutLogin,
		"the same credential can be set again":     setsAgain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, subject(t))
		})
	}
}

// errUnsettled means that a user does not have the expected state yet.
var errUnsettled = errors.New("not settled")

// newRecord returns a credential with a password that no other test uses.
func newRecord(t *testing.T, username string, generation int) credential.Record {
	t.Helper()
	password, err := credential.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return credential.Record{Username: username, Password: password, Generation: generation, Created: time.Now().UTC().Truncate(time.Second)}
}

// settles repeats a call until its error is the wanted one.
func settles(t *testing.T, what string, want error, call func() error) {
	t.Helper()
	var err error
	for begun := time.Now(); time.Since(begun) < settlesWithin; <-time.After(settlePause) {
		if err = call(); errors.Is(err, want) {
			return
		}
	}
	t.Fatalf("%s: got %v, want %v", what, err, want)
}

// settlesAs waits until a user has a state.
func (s SystemSubject) settlesAs(t *testing.T, what string, record credential.Record, want ...credential.State) {
	t.Helper()
	settles(t, what, nil, func() error {
		is, err := s.System.Observe(t.Context(), s.Owner, record.Username, record.Password)
		for _, state := range want {
			if err == nil && is == state {
				return nil
			}
		}
		return fmt.Errorf("user %s is %q, want %q: %w", record.Username, is, want, cmp.Or(err, errUnsettled))
	})
}

// accepts checks which credentials work.
func (s SystemSubject) accepts(t *testing.T, what string, want map[credential.Record]bool) {
	t.Helper()
	for record, expected := range want {
		if s.Accepts(t, record) != expected {
			t.Errorf("%s: generation %d is accepted: %t, want %t", what, record.Generation, !expected, expected)
		}
	}
}

func (s SystemSubject) creates(t *testing.T, record credential.Record) {
	t.Helper()
	settles(t, "create", nil, func() error {
		err := s.System.Create(t.Context(), s.Owner, record)
		if err == nil {
			return nil
		}
		// It can settle later. To repeat Create is an error if the user exists.
		if is, unknown := s.System.Observe(t.Context(), s.Owner, record.Username, record.Password); unknown == nil && is == credential.Accepted {
			return nil
		}
		return err
	})
	if s.Admit != nil {
		settles(t, "admit", nil, func() error { return s.Admit(t.Context(), record.Username) })
	}
	s.settlesAs(t, "after Create", record, credential.Accepted, credential.Present)
}

func (s SystemSubject) sets(t *testing.T, change credential.Assignment) {
	t.Helper()
	settles(t, "set", nil, func() error { return s.System.Set(t.Context(), s.Owner, change) })
}

func createsOnce(t *testing.T, s SystemSubject) {
	record := newRecord(t, s.Username, 1)
	s.settlesAs(t, "before Create", record, credential.Absent)
	s.creates(t, record)
	if err := s.System.Create(t.Context(), s.Owner, newRecord(t, s.Username, 2)); err == nil {
		t.Error("Create replaces a user that exists")
	}
	s.accepts(t, "after Create", map[credential.Record]bool{record: true})
	beside, err := s.System.Superseded(t.Context(), s.Owner, record, s.others(record))
	if given := credential.GivenOf(record); err != nil || beside.Accepted || beside.Current != given || beside.Latest != given {
		t.Errorf("Superseded returns %+v, %v; want the Given of the record and nothing else", beside, err)
	}
}

// others returns the other users of the credential.
func (s SystemSubject) others(record credential.Record) []string {
	switch {
	case s.Alternate == "":
		return nil
	case record.Username == s.Alternate:
		return []string{s.Username}
	}
	return []string{s.Alternate}
}

func refusesOthers(t *testing.T, s SystemSubject) {
	first, stranger := newRecord(t, s.Username, 1), s.Owner
	stranger.Name += "-other"
	s.creates(t, first)
	if is, err := s.System.Observe(t.Context(), stranger, s.Username, first.Password); err != nil || is != credential.Foreign {
		t.Errorf("Observe for another owner: %q, %v", is, err)
	}
	next := newRecord(t, s.Username, 2)
	if err := s.System.Set(t.Context(), stranger, credential.Assignment{Record: next}); !errors.Is(err, credential.ErrConflict) {
		t.Errorf("Set by another owner: %v, want ErrConflict", err)
	}
	_ = s.System.Retire(t.Context(), stranger, newRecord(t, s.Username+"-other", 1), []string{s.Username}) // With or without an error, it changes nothing.
	s.accepts(t, "after that", map[credential.Record]bool{first: true, next: false})
}

func keepsLatest(t *testing.T, s SystemSubject) {
	first := newRecord(t, s.Username, 1)
	second := newRecord(t, s.Username, 2)
	s.creates(t, first)
	s.sets(t, credential.Assignment{Record: second})
	s.settlesAs(t, "after Set", second, credential.Accepted)
	for range 2 { // The error stays.
		settles(t, "set what was replaced", credential.ErrSuperseded, func() error {
			return s.System.Set(t.Context(), s.Owner, credential.Assignment{Record: first})
		})
	}
	s.accepts(t, "after that", map[credential.Record]bool{first: false, second: true})
}

func overlapsUntilRetire(t *testing.T, s SystemSubject) {
	first := newRecord(t, s.Username, 1)
	s.creates(t, first)
	second := newRecord(t, s.Username, 2)
	if s.Alternate != "" {
		second.Username = s.Alternate
		s.creates(t, second)
	} else {
		s.sets(t, credential.Assignment{Record: second, Keep: true, Previous: first})
	}
	s.settlesAs(t, "in the overlap", second, credential.Accepted)
	s.accepts(t, "in the overlap", map[credential.Record]bool{first: true, second: true})
	if beside, err := s.System.Superseded(t.Context(), s.Owner, second, s.others(second)); err != nil || !beside.Accepted {
		t.Errorf("in the overlap, Superseded returns %+v, %v; want Accepted", beside, err)
	}
	for range 2 { // It can be repeated.
		settles(t, "retire", nil, func() error { return s.System.Retire(t.Context(), s.Owner, second, s.others(second)) })
	}
	s.settlesAs(t, "after Retire", second, credential.Accepted)
	s.accepts(t, "after Retire", map[credential.Record]bool{first: false, second: true})
	if beside, err := s.System.Superseded(t.Context(), s.Owner, second, s.others(second)); err != nil || beside.Accepted {
		t.Errorf("after Retire, Superseded returns %+v, %v", beside, err)
	}
}

func setsWithoutLogin(t *testing.T, s SystemSubject) {
	if s.HoldLogins == nil {
		t.Skip("holders of credentials cannot delay logins in this system")
	}
	first, second := newRecord(t, s.Username, 1), newRecord(t, s.Username, 2)
	s.creates(t, first)
	s.HoldLogins(t, first)
	ctx, cancel := context.WithTimeout(t.Context(), revokesWithin)
	defer cancel()
	if is, err := s.System.Observe(ctx, s.Owner, s.Username, credential.Password{}); err != nil || is != credential.Present {
		t.Errorf("Observe without a password: %q, %v; want %q without a login", is, err, credential.Present)
	}
	if beside, err := s.System.Superseded(ctx, s.Owner, second, s.others(second)); err != nil || beside.Current != credential.GivenOf(first) {
		t.Errorf("Superseded returns %+v, %v", beside, err)
	}
	if err := s.System.Set(ctx, s.Owner, credential.Assignment{Record: second, Previous: first}); err != nil {
		t.Errorf("Set: %v", err)
	}
	s.accepts(t, "after Set", map[credential.Record]bool{first: false, second: true})
}

func setsAgain(t *testing.T, s SystemSubject) {
	record := newRecord(t, s.Username, 1)
	s.creates(t, record)
	for range 2 {
		s.sets(t, credential.Assignment{Record: record})
	}
	s.settlesAs(t, "after Set", record, credential.Accepted)
	s.accepts(t, "after Set", map[credential.Record]bool{record: true})
}
