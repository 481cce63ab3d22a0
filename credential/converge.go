package credential

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that stay until a person acts, besides ErrConflict and ErrInvalid. Nothing was written.
var (
	// ErrMissing means that the user exists in the other system, but the store has no credential. A crash never causes this: the credential
	// was deleted or lost. Restore it, or generate another one with Policy.ReplaceMissing.
	ErrMissing = errors.New("the user exists, but its credential is missing")
	// ErrBehind means that the store has an older credential than the one in use, for example after a restore from a backup. It wraps
	// ErrMissing.
	ErrBehind = fmt.Errorf("the store is behind: %w", ErrMissing)
	// ErrDrifted means that the other system does not accept the stored password, and Policy.LeaveDrift forbids a change.
	ErrDrifted = errors.New("the stored password is not accepted")
)

// ErrUnproven means that the other system does not accept a new credential yet. Converge again later.
var ErrUnproven = errors.New("the system does not accept the credential yet")

// Blocked reports whether an error stays until a person acts, so that a retry does not help. Nothing was generated, changed or overwritten.
func Blocked(err error) bool {
	for _, blocks := range []error{ErrConflict, ErrInvalid, ErrMissing, ErrDrifted, ErrUnwritable} {
		if errors.Is(err, blocks) {
			return true
		}
	}
	return false
}

// Policy sets what Converge may do in situations that a crash never causes. The zero value sets a differing password to the stored one,
// generates no credential for an existing user, and takes over no user without a mark.
type Policy struct {
	// LeaveDrift returns ErrDrifted instead of setting the stored password.
	LeaveDrift bool
	// ReplaceMissing generates another credential for a user whose credential the store has lost. If a free Alternate exists, or a user can
	// have two passwords, the lost one is accepted until the overlap ends; otherwise its holders are locked out. It acts on a single Read.
	// A store can be empty for a moment, for example during a restore, so set it only after ErrMissing has lasted.
	ReplaceMissing bool
	// Adopt takes over a user without a mark and sets the stored password. A user with the mark of another owner is never taken over.
	Adopt bool
}

// DefaultOverlap is the default of User.Overlap.
const DefaultOverlap = 24 * time.Hour

// User is a user of another system whose credential is generated once and rotated on request.
type User struct {
	Once

	System System
	Policy Policy
	// Overlap is how long the previous record is accepted after readers get a new one. The default is DefaultOverlap. The System must be a
	// Rotator, otherwise the overlap never ends. It belongs to the Request: during the overlap of an earlier request, that record's overlap
	// applies.
	Overlap time.Duration
	// InPlace rotates without an overlap and without the Alternate: the old password is rejected at once.
	InPlace bool
	// Proven reports that the system recently accepted the latest record. Converge then only checks that the user exists.
	Proven bool
}

// Outcome is the result of Converge.
type Outcome struct {
	// Record is the latest one, which the system accepts and readers get.
	Record
	// Until is when the previous credential is retired. It is zero if only the Record is accepted.
	Until time.Time
	// Waits reports that the Request is not answered yet because an overlap is in progress. The first call after Until answers it. It can
	// come with ErrDrifted.
	Waits bool
	// Verified reports that the system accepted the password in this call.
	Verified bool
	// Restored reports that the system rejected the password that readers have, and that Converge set it again in this call. If this repeats,
	// another client sets passwords too.
	Restored bool
}

// Converge brings store, system and readers to the desired state, in this order, and returns the credential once the system accepts it. It
// is safe to call concurrently, again, and after any error. It writes nothing if nothing differs. It decides by the table in
// docs/concepts/credentials.md.
//
// If some members of the System do not answer, it returns ErrPartial. The others got what they should have. It generates nothing then, except
// for a Request with InPlace, and publishes only what replaces a password in place, because readers have one that is rejected. The Outcome is
// zero if readers do not get the latest record yet.
func (u User) Converge(ctx context.Context) (Outcome, error) {
	outcome, err := u.converge(ctx)
	if errors.Is(err, errWithheld) {
		return Outcome{}, err
	}
	return outcome, err
}

func (u User) converge(ctx context.Context) (Outcome, error) {
	stored, err := u.read(ctx)
	if err != nil {
		return Outcome{}, err
	}
	latest := stored.latest()
	switch {
	case latest.Generation == 0:
		return u.replace(ctx, stored)
	case latest.Generation < max(u.Generation, stored.Copy):
		return u.older(ctx, stored)
	}
	return u.advance(ctx, stored)
}

// older handles a store that has only an older generation than the one in use. If the system accepts only the stored record, this record was
// generated after all others had been lost, and older continues with it. Otherwise the record in use was lost.
func (u User) older(ctx context.Context, stored stored) (Outcome, error) {
	latest := stored.latest()
	alone, err := u.alone(ctx, latest)
	switch {
	case err != nil:
		return Outcome{}, err
	case alone && stored.Copy <= latest.Generation:
		u.Generation = 0
		return u.advance(ctx, stored)
	}
	outcome, err := u.replace(ctx, stored)
	if errors.Is(err, ErrMissing) {
		err = u.behind(latest, max(u.Generation, stored.Copy), fmt.Errorf("%w; restore the credential, or allow replacing it", ErrBehind))
	}
	return outcome, err
}

// alone reports whether the system accepts nothing but a record, or nothing at all.
func (u User) alone(ctx context.Context, latest Record) (bool, error) {
	for _, login := range u.others(latest) {
		if state, err := u.observe(ctx, Record{Username: login}); err != nil || state != Absent && state != Retired {
			return false, err
		}
	}
	if state, err := u.observe(ctx, Record{Username: latest.Username}); err != nil || state == Absent {
		return err == nil, err
	}
	state, err := u.observe(ctx, latest)
	if err != nil && !errors.Is(err, ErrUnusable) || state != Accepted {
		return false, err
	}
	beside, err := u.beside(ctx, latest)
	return !beside.Accepted, err
}

// replace generates a record if the store has lost, or never had, the current one. It does so only if the system says that no user exists, or if
// the Policy allows it.
func (u User) replace(ctx context.Context, stored stored) (Outcome, error) {
	latest := stored.latest()
	from := draft{max(latest.Generation, stored.Copy) + 1, "", u.newOverlap(), latest.Created}
	for _, login := range u.logins() {
		state, err := u.observe(ctx, Record{Username: login})
		if err != nil {
			return Outcome{}, err
		}
		if _, err := u.Policy.decide(situation{lost: true, state: state}); err != nil {
			return Outcome{}, fmt.Errorf("credential %s, user %s: %w", u.Name, login, err)
		}
		if from, err = u.consider(ctx, from, login, state); err != nil {
			return Outcome{}, err
		}
	}
	if from.username == "" {
		from.username = u.Username
	}
	made, err := u.generate(ctx, from)
	if err != nil {
		return Outcome{}, err
	}
	u.Generation = 0 // The known generation is that of the lost record.
	return u.settle(ctx, made)
}

// consider sets the user of the draft if this one is free. It also raises the draft's earliest time above that of a password that the user may
// still accept.
func (u User) consider(ctx context.Context, from draft, login string, state State) (draft, error) {
	if from.username == "" && (state == Absent || state == Retired) {
		from.username = login
	}
	if state != Present {
		return from, nil
	}
	beside, err := u.beside(ctx, Record{Username: login})
	if err == nil && beside.Current.Created.After(from.after) {
		from.after = beside.Current.Created
	}
	return from, err
}

// errWithheld means that readers do not get the latest record, because members of the system lack it.
var errWithheld = errors.New("not published before all members accept it")

// settle sets the latest record in the system and publishes it to readers. If the store is behind the system, settle writes nothing, or
// replaces the missing record if the Policy allows it.
func (u User) settle(ctx context.Context, stored stored) (Outcome, error) {
	latest := stored.latest()
	seen, err := u.look(ctx, stored)
	if err != nil {
		return Outcome{}, errors.Join(err, u.endOverlap(ctx, stored))
	}
	if err := u.checkBehind(stored, seen.Latest); err != nil {
		if u.Policy.ReplaceMissing && seen.partial == nil {
			return u.replace(ctx, stored)
		}
		return Outcome{}, err
	}
	if seen, err = u.give(ctx, stored, seen); err != nil {
		return Outcome{}, err
	}
	if seen.partial != nil && stored.unpublished() && !u.replaced(stored) {
		return Outcome{Record: latest}, fmt.Errorf("credential %s: %w: %w", u.Name, errWithheld, seen.partial)
	}
	since, err := u.publish(ctx, stored)
	if err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Record: latest, Verified: seen.state == Accepted, Restored: seen.restored}
	if outcome.Until, err = u.supersede(ctx, latest, seen.Beside, since); err == nil {
		err = errors.Join(seen.partial, seen.unusable)
	}
	return outcome, err
}

// replaced reports whether the latest record has replaced one that readers have and that members of the system reject now.
func (u User) replaced(stored stored) bool {
	return u.overlapOf(stored.latest()) == 0 && stored.previous().Generation > 0
}

// seen is the state of the latest record's user in the system, and what the system has in addition.
type seen struct {
	state State
	Beside
	// restored is true if the stored password was set again, although readers have it already.
	restored bool
	// partial is the ErrPartial of members that did not answer. It is nil if all did.
	partial error
	// unusable is the ErrUnusable of the last login. It is nil if the user can log in, or if no login was tried.
	unusable error
}

// also adds an error to what is seen if it does not stop Converge, and returns any other.
func (s *seen) also(err error) error {
	passing, failed := split(err)
	if errors.Is(passing, ErrUnusable) {
		s.unusable = passing
	}
	if errors.Is(passing, ErrPartial) && s.partial == nil {
		s.partial = passing
	}
	return failed
}

// split returns an error either as one that Converge returns in the end, ErrPartial or ErrUnusable, or as one that stops it.
func split(err error) (passing, failed error) {
	if (errors.Is(err, ErrPartial) || errors.Is(err, ErrUnusable)) && !Blocked(err) {
		return err, nil
	}
	return nil, err
}

// look observes the user of the latest record, tests the password unless it was proven recently, and reads what the system has in addition.
func (u User) look(ctx context.Context, stored stored) (seen, error) {
	latest, tried := stored.latest(), stored.latest()
	if u.Proven && u.Generation == latest.Generation && !stored.unpublished() {
		tried.Password = Password{}
	}
	var is seen
	var err error
	is.state, err = u.observe(ctx, tried)
	if err := is.also(err); err != nil || is.state == Foreign || is.state == Unmarked {
		return is, err
	}
	is.Beside, err = u.beside(ctx, latest)
	return is, is.also(err)
}

// give sets the latest record in the system if the system does not have it, and verifies that the system accepts it.
func (u User) give(ctx context.Context, stored stored, is seen) (seen, error) {
	latest := stored.latest()
	do, err := u.Policy.decide(situation{state: is.state, unfinished: u.unfinished(stored, is)})
	if err != nil {
		if is.partial != nil {
			err = fmt.Errorf("%w; %w", err, is.partial)
		}
		return seen{}, fmt.Errorf("credential %s, user %s: %w", u.Name, latest.Username, err)
	}
	if do != nothing && stored.unpublished() {
		if err := u.checkPublish(ctx, latest); err != nil {
			return seen{}, err
		}
	}
	overlap := u.overlapOf(latest)
	keep := overlap > 0 && u.Alternate == "" && (stored.unpublished() || time.Now().Before(stored.Since.Add(overlap)))
	both := Assignment{Record: latest, Keep: keep, Previous: stored.previous()}
	switch do {
	case create:
		err = u.create(ctx, both)
	case set:
		is.restored = !stored.unpublished()
		err = u.System.Set(ctx, u.Owner, both)
	case nothing:
		return is, nil
	}
	if err := is.also(err); err != nil {
		return seen{}, fmt.Errorf("%s the user %s: %w", do, latest.Username, err)
	}
	is.unusable = nil
	is.state, err = u.prove(ctx, latest)
	if err := is.also(err); err != nil {
		return seen{}, err
	}
	is.Beside, err = u.beside(ctx, latest)
	return is, is.also(err)
}

// unfinished reports whether the system may never have had the latest record: it is not published, and there is no other evidence that it was
// verified. A Given of a user that cannot log in is no evidence, because some systems allow the login only after the password is set.
func (u User) unfinished(stored stored, is seen) bool {
	latest := stored.latest()
	given := is.Current.is(latest)
	switch {
	case !stored.unpublished(), stored.Copy >= latest.Generation:
		return false
	case is.Current.IsZero(), given && is.state == Retired:
		return u.Generation < latest.Generation
	default:
		return !given
	}
}

// create creates the user. If apps may still use the previous credential, the user gets both.
func (u User) create(ctx context.Context, both Assignment) error {
	if !both.Keep || both.Previous.Generation == 0 {
		return u.System.Create(ctx, u.Owner, both.Record)
	}
	if _, err := split(u.System.Create(ctx, u.Owner, both.Previous)); err != nil {
		return err
	}
	return u.System.Set(ctx, u.Owner, both)
}

func (u User) observe(ctx context.Context, record Record) (State, error) {
	state, err := u.System.Observe(ctx, u.Owner, record.Username, record.Password)
	if err != nil {
		return state, fmt.Errorf("look for the user %s: %w", record.Username, err)
	}
	return state, nil
}

// prove verifies that the system accepts the record that it was given.
func (u User) prove(ctx context.Context, given Record) (State, error) {
	state, err := u.observe(ctx, given)
	if _, failed := split(err); failed == nil && state != Accepted && state != Present {
		err = fmt.Errorf("user %s is %s: %w", given.Username, state, ErrUnproven)
	}
	return state, err
}
