package credential

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What keeps a user from having its credential until a person has looked, beside ErrConflict and ErrInvalid. Nothing was written.
var (
	// ErrMissing: the other system has the user, and the store has no credential. That never comes from a crash: the credential was
	// deleted, or lost. Restore it, or ask for another with Policy.ReplaceMissing.
	ErrMissing = errors.New("the user is there, and its credential is not")
	// ErrBehind is the ErrMissing of a store that has an older credential than the one that is in use, such as after a restore from a backup.
	ErrBehind = fmt.Errorf("the store is behind: %w", ErrMissing)
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
	// not log in, or a user can have two passwords, who uses the old one goes on until the overlap ends; else it is locked out. It acts on what
	// one Read says. A store can be empty for a moment, for example during a restore, so set it only after ErrMissing has lasted.
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
	// Rotator, else it does not end. It belongs to the Request: while the overlap of an earlier request lasts, the one of its record applies.
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
		return u.replace(ctx, stored)
	case latest.Generation < max(u.Generation, stored.Copy):
		return u.older(ctx, stored)
	}
	return u.advance(ctx, stored)
}

// advance settles what the store has, and then answers the Request.
func (u User) advance(ctx context.Context, stored stored) (Outcome, error) {
	latest := stored.latest()
	outcome, err := u.settle(ctx, stored)
	drifted := errors.Is(err, ErrDrifted)
	if err != nil && !drifted || !u.rotates(latest) || !drifted && outcome.Record != latest {
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
	next, err := u.generate(ctx, draft{latest.Generation + 1, u.next(latest), u.newOverlap(), latest.Created})
	if err != nil {
		return Outcome{}, err
	}
	next.Records = append([]Record{latest}, next.Records...)
	return u.settle(ctx, next)
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
	case alone && stored.Copy <= latest.Generation:
		u.Generation = 0
		return u.advance(ctx, stored)
	}
	outcome, err := u.replace(ctx, stored)
	if errors.Is(err, ErrMissing) {
		err = u.behind(latest, max(u.Generation, stored.Copy), fmt.Errorf("%w; restore that, or allow to replace it", ErrBehind))
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
	if state, err := u.observe(ctx, latest); err != nil || state != Accepted {
		return false, err
	}
	beside, err := u.beside(ctx, latest)
	return !beside.Accepted, err
}

// replace generates a record where the store has lost, or never had, the one that counts, and where the system says that there is no user, or it
// may be replaced.
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
	u.Generation = 0 // What is known is about the record that was lost.
	return u.settle(ctx, made)
}

// consider gives the draft a login that is free, and the time of a password that the login may still accept: the new one is later.
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

// settle makes the system and the readers have the latest record. If the store turns out to be behind the system, it writes nothing, or
// replaces what is missing.
func (u User) settle(ctx context.Context, stored stored) (Outcome, error) {
	latest := stored.latest()
	seen, err := u.look(ctx, stored)
	if err != nil {
		return Outcome{}, err
	}
	if err := u.checkBehind(ctx, stored, seen); err != nil {
		if errors.Is(err, ErrBehind) && u.Policy.ReplaceMissing {
			return u.replace(ctx, stored)
		}
		return Outcome{}, err
	}
	if seen, err = u.give(ctx, stored, seen); err != nil {
		return Outcome{}, err
	}
	since, err := u.publish(ctx, stored)
	if err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Record: latest, Verified: seen.state == Accepted}
	if outcome.Until, err = u.supersede(ctx, latest, seen.Beside, since); err != nil {
		return outcome, err
	}
	return outcome, u.keep(ctx, latest, seen)
}

// seen is what the system has of the latest record, and beside it.
type seen struct {
	state State
	Beside
}

// look looks for the user of the latest record, tries the password if that is due, and looks what the system has beside it.
func (u User) look(ctx context.Context, stored stored) (seen, error) {
	latest, tried := stored.latest(), stored.latest()
	if u.Proven && u.Generation == latest.Generation && !stored.unpublished() {
		tried.Password = Password{}
	}
	state, err := u.observe(ctx, tried)
	if err != nil || state == Foreign || state == Unmarked {
		return seen{state: state}, err
	}
	beside, err := u.beside(ctx, latest)
	return seen{state, beside}, err
}

// give gives the system the latest record, where it has not got it, and shows that it has then.
func (u User) give(ctx context.Context, stored stored, is seen) (seen, error) {
	latest := stored.latest()
	do, err := u.Policy.decide(situation{state: is.state, unfinished: u.unfinished(stored, is)})
	if err != nil {
		return seen{}, fmt.Errorf("credential %s, user %s: %w", u.Name, latest.Username, err)
	}
	overlap := u.overlapOf(latest)
	keep := overlap > 0 && u.Alternate == "" && (stored.unpublished() || time.Now().Before(stored.Since.Add(overlap)))
	both := Assignment{Record: latest, Keep: keep, Previous: stored.previous()}
	switch do {
	case create:
		err = u.create(ctx, both)
	case set:
		err = u.System.Set(ctx, u.Owner, both)
	case nothing:
		return is, nil
	}
	if err != nil {
		return seen{}, fmt.Errorf("%s the user %s: %w", do, latest.Username, err)
	}
	state, err := u.prove(ctx, latest)
	if err != nil {
		return seen{}, err
	}
	beside, err := u.beside(ctx, latest)
	return seen{state, beside}, err
}

// unfinished reports whether the system may never have had the latest record: readers do not get it, and nothing else shows that it was proven.
// That the system was given it shows nothing while the user may not log in: some systems open a user only after the password is set.
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

// create makes the user. If apps may still use the credential before this one, the user gets both.
func (u User) create(ctx context.Context, both Assignment) error {
	if !both.Keep || both.Previous.Generation == 0 {
		return u.System.Create(ctx, u.Owner, both.Record)
	}
	if err := u.System.Create(ctx, u.Owner, both.Previous); err != nil {
		return err
	}
	return u.System.Set(ctx, u.Owner, both)
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
