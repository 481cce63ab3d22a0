package credential

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What keeps a user from having its credential until a person has looked, beside ErrConflict and ErrInvalid. Nothing was written.
var (
	// ErrMissing: the other system has the user, and the store has no credential. That never comes from a crash: the credential was
	// deleted, or lost. Restore it, or ask for another with Policy.ReplaceMissing.
	ErrMissing = errors.New("the user is there, and its credential is not")
	// ErrDrifted: the other system does not accept the stored password, and Policy.LeaveDrift says to leave that.
	ErrDrifted = errors.New("the stored password is not the one that is in use")
)

// ErrUnproven tells that the other system does not accept yet what it was just given. Converge again later.
var ErrUnproven = errors.New("the system does not accept the credential yet")

// Blocked tells whether an error stays until a person has looked, so that trying again is of no use. Nothing was generated, changed or
// overwritten then.
func Blocked(err error) bool {
	for _, blocks := range []error{ErrConflict, ErrInvalid, ErrMissing, ErrDrifted} {
		if errors.Is(err, blocks) {
			return true
		}
	}
	return false
}

// Policy is what may be done about what no crash leaves behind. The zero value changes the password of a user to the stored one, generates
// none for a user that is there, and takes over no user that carries no mark.
type Policy struct {
	// LeaveDrift leaves a password that is not the stored one as it is, with ErrDrifted.
	LeaveDrift bool
	// ReplaceMissing generates another credential for a user whose credential the store has lost. Where there is an Alternate user that may
	// not log in, or a user can have two passwords, who uses the old one goes on until the overlap ends; else it is locked out.
	ReplaceMissing bool
	// Adopt takes over a user without a mark, and gives it the stored password. One that another owner has marked is never taken over.
	Adopt bool
}

// DefaultOverlap is how long the credential before a rotation stays in use if nothing else is said.
const DefaultOverlap = 24 * time.Hour

// User is a user of another system with a credential that is generated once, and rotated by request.
type User struct {
	Once

	System System
	Policy Policy
	// Overlap is how long, from when readers get a record, the one before it is accepted too; 0 is DefaultOverlap. The system must be a
	// Rotator, else it does not end.
	Overlap time.Duration
	// InPlace rotates without an overlap, and without the Alternate: who has the old password cannot log in any more.
	InPlace bool
	// Proven tells that the system has accepted the latest record not long ago, so that the password need not be tried again: it is only looked
	// whether the user is there.
	Proven bool
}

// Outcome is what a user has after a convergence.
type Outcome struct {
	// Record is the latest one, which the system accepts and readers get.
	Record
	// Until is when the credential before it is taken out of use; the zero time if nothing but the Record is accepted.
	Until time.Time
	// Waits tells that the Request is not answered yet, since the overlap of the rotation before it lasts. It is answered by the first
	// convergence after Until. It may come with ErrDrifted.
	Waits bool
	// Verified tells that the system has accepted the password in this convergence, and did not only say that it has the user.
	Verified bool
}

// Converge makes the system have the user with the stored credential: it looks, decides, and does what is missing, the store first, then
// the system, and readers last. It returns the credential when the system accepts it. Calling it again, at the same time, or after any
// error is safe. Where all is as it should be it writes nothing.
//
// What it decides is a table, in docs/concepts/credentials.md.
func (u User) Converge(ctx context.Context) (Outcome, error) {
	stored, err := u.read(ctx)
	if err != nil {
		return Outcome{}, err
	}
	latest := stored.latest()
	switch {
	case latest.Generation == 0:
		return u.anew(ctx, 1)
	case latest.Generation < u.Generation:
		return u.older(ctx, stored)
	}
	return u.advance(ctx, stored)
}

// advance settles what the store has, and then answers the Request.
func (u User) advance(ctx context.Context, stored stored) (Outcome, error) {
	latest := stored.latest()
	outcome, err := u.settle(ctx, stored)
	drifted := errors.Is(err, ErrDrifted)
	if err != nil && !drifted || !u.rotates(latest) {
		return outcome, err
	}
	if drifted {
		until, unknown := u.promised(ctx, stored)
		if unknown != nil {
			return Outcome{}, unknown
		}
		outcome = Outcome{Record: latest, Until: until}
	}
	if outcome.Waits = !outcome.Until.IsZero(); outcome.Waits {
		return outcome, err
	}
	next, err := u.generate(ctx, latest.Generation+1, u.next(latest))
	if err != nil {
		return Outcome{}, err
	}
	next.Records = append([]Record{latest}, next.Records...)
	return u.settle(ctx, next)
}

// promised tells until when who has the credential before a drifted one is let in; the zero time if nobody is. Another rotation would take
// that from them, as there is room for two.
func (u User) promised(ctx context.Context, stored stored) (time.Time, error) {
	previous, until := stored.previous(), u.until(stored.Since)
	if previous.Generation == 0 || !time.Now().Before(until) {
		return time.Time{}, nil
	}
	state, err := u.observe(ctx, previous)
	if err != nil || state != Accepted && state != Present {
		return time.Time{}, err
	}
	return until, nil
}

// next is the user whom the record of a rotation is for.
func (u User) next(latest Record) string {
	if u.InPlace {
		return latest.Username
	}
	return u.Once.next(latest)
}

// older goes on where the store shows less than is known to be in use. If the system accepts nothing but what the store shows, that was made
// after all had been lost. Else what is in use has been lost.
func (u User) older(ctx context.Context, stored stored) (Outcome, error) {
	latest := stored.latest()
	alone, err := u.alone(ctx, latest)
	switch {
	case err != nil:
		return Outcome{}, err
	case alone:
		u.Generation = 0
		return u.advance(ctx, stored)
	}
	outcome, err := u.anew(ctx, latest.Generation+1)
	if errors.Is(err, ErrMissing) {
		err = u.behind(latest, err)
	}
	return outcome, err
}

// alone tells whether the system accepts nothing but a record, or nothing at all.
func (u User) alone(ctx context.Context, latest Record) (bool, error) {
	for _, login := range u.others(latest) {
		if state, err := u.observe(ctx, Record{Username: login}); err != nil || state != Absent && state != Retired {
			return false, err
		}
	}
	if state, err := u.observe(ctx, Record{Username: latest.Username}); err != nil || state == Absent {
		return err == nil, err
	}
	if state, err := u.observe(ctx, latest); err != nil || state != Accepted {
		return false, err
	}
	more, err := u.superseded(ctx, latest)
	return !more, err
}

// anew generates a record where the store has lost, or never had, the one that counts, and where the system says that there is no user, or it
// may be replaced.
func (u User) anew(ctx context.Context, generation int) (Outcome, error) {
	username := ""
	for _, login := range u.logins() {
		state, err := u.observe(ctx, Record{Username: login})
		if err != nil {
			return Outcome{}, err
		}
		if _, err := u.Policy.decide(situation{lost: true, state: state}); err != nil {
			return Outcome{}, fmt.Errorf("credential %s, user %s: %w", u.Name, login, err)
		}
		if username == "" && (state == Absent || state == Retired) {
			username = login
		}
	}
	if username == "" {
		username = u.Username
	}
	made, err := u.generate(ctx, generation, username)
	if err != nil {
		return Outcome{}, err
	}
	return u.settle(ctx, made)
}

// settle makes the system and the readers have the latest record.
func (u User) settle(ctx context.Context, stored stored) (Outcome, error) {
	outcome := Outcome{Record: stored.latest()}
	state, err := u.give(ctx, stored)
	if err != nil {
		return Outcome{}, err
	}
	outcome.Verified = state == Accepted
	since, err := u.publish(ctx, stored)
	if err != nil {
		return Outcome{}, err
	}
	outcome.Until, err = u.supersede(ctx, outcome.Record, since)
	return outcome, err
}

// give gives the system the latest record, where it has not got it, and shows that it has then.
func (u User) give(ctx context.Context, stored stored) (State, error) {
	latest := stored.latest()
	state, err := u.look(ctx, stored)
	if err != nil {
		return "", err
	}
	do, err := u.Policy.decide(situation{state: state, unfinished: stored.unpublished()})
	if err != nil {
		return "", fmt.Errorf("credential %s, user %s: %w", u.Name, latest.Username, err)
	}
	keep := !u.InPlace && u.Alternate == "" && (stored.unpublished() || time.Now().Before(u.until(stored.Since)))
	both := Assignment{Record: latest, Keep: keep, Previous: stored.previous()}
	switch do {
	case create:
		err = u.create(ctx, both)
	case set:
		err = u.System.Set(ctx, u.Owner, both)
	case nothing:
		return state, nil
	}
	if err != nil {
		return "", fmt.Errorf("%s the user %s: %w", do, latest.Username, err)
	}
	return u.prove(ctx, latest)
}

// create makes the user, with both of its credentials where somebody may still have the one before.
func (u User) create(ctx context.Context, both Assignment) error {
	if !both.Keep || both.Previous.Generation == 0 {
		return u.System.Create(ctx, u.Owner, both.Record)
	}
	if err := u.System.Create(ctx, u.Owner, both.Previous); err != nil {
		return err
	}
	return u.System.Set(ctx, u.Owner, both)
}

// look looks for the user of the latest record, and tries the password if that is due.
func (u User) look(ctx context.Context, stored stored) (State, error) {
	latest := stored.latest()
	if u.Proven && u.Generation == latest.Generation && !stored.unpublished() {
		latest.Password = Password{}
	}
	return u.observe(ctx, latest)
}

// until is when what was in use before a record is taken out of use, if readers get the record since then.
func (u User) until(since time.Time) time.Time {
	switch {
	case u.InPlace:
		return since
	case u.Overlap == 0:
		return since.Add(DefaultOverlap)
	default:
		return since.Add(u.Overlap)
	}
}

// supersede takes what was in use before the latest record out of use, if it is time, and else tells when that is.
func (u User) supersede(ctx context.Context, latest Record, since time.Time) (time.Time, error) {
	system, is := u.System.(Rotator)
	if !is {
		return time.Time{}, nil
	}
	accepts, err := u.superseded(ctx, latest)
	if err != nil || !accepts {
		return time.Time{}, err
	}
	if until := u.until(since); time.Now().Before(until) {
		return until, nil
	}
	if err := system.Retire(ctx, u.Owner, latest, u.others(latest)); err != nil {
		return time.Time{}, fmt.Errorf("take out of use what was before the user %s: %w", latest.Username, err)
	}
	return time.Time{}, nil
}

// superseded tells whether the system accepts anything beside a record.
func (u User) superseded(ctx context.Context, latest Record) (bool, error) {
	system, is := u.System.(Rotator)
	if !is {
		return false, nil
	}
	accepts, err := system.Superseded(ctx, u.Owner, latest, u.others(latest))
	if err != nil {
		return false, fmt.Errorf("look what is accepted beside the user %s: %w", latest.Username, err)
	}
	return accepts, nil
}

// others are the users that a record is not for.
func (u User) others(latest Record) []string {
	return slices.DeleteFunc(u.logins(), func(login string) bool { return login == latest.Username })
}

func (u User) observe(ctx context.Context, record Record) (State, error) {
	state, err := u.System.Observe(ctx, u.Owner, record.Username, record.Password)
	if err != nil {
		return "", fmt.Errorf("look for the user %s: %w", record.Username, err)
	}
	return state, nil
}

// prove shows that the system accepts what it was given.
func (u User) prove(ctx context.Context, given Record) (State, error) {
	state, err := u.observe(ctx, given)
	if err == nil && state != Accepted && state != Present {
		err = fmt.Errorf("user %s is %s: %w", given.Username, state, ErrUnproven)
	}
	return state, err
}

// action is what is to be done in the other system, after the store has a credential.
type action string

const (
	nothing action = "leave"
	create  action = "create"
	set     action = "set the password of"
)

// situation is what there is of a user.
type situation struct {
	// lost tells that the store has lost, or never had, its credential.
	lost  bool
	state State
	// unfinished tells that the system may never have been given the credential: it was stored just now, or what was to follow was broken off.
	unfinished bool
}

// decide is the table of tenant-and-database.md §2 for one system: what is done about a user.
func (p Policy) decide(is situation) (action, error) {
	switch {
	case is.state == Absent:
		return create, nil
	case is.state == Foreign:
		return "", fmt.Errorf("the system has it marked for another owner: %w", ErrConflict)
	case is.state == Unmarked && !p.Adopt:
		return "", fmt.Errorf("the system has it without a mark: %w; remove it, or allow to adopt it", ErrConflict)
	case is.lost && !p.ReplaceMissing:
		return "", fmt.Errorf("%w; restore that, or allow to replace it", ErrMissing)
	case is.state == Unmarked:
		return set, nil // So it gets its mark.
	case is.state == Accepted, is.state == Present && !is.lost:
		return nothing, nil
	case p.LeaveDrift && !is.lost && !is.unfinished:
		return "", fmt.Errorf("%w; set the stored one, or allow that", ErrDrifted)
	default:
		return set, nil
	}
}
