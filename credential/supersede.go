package credential

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// newOverlap is the overlap of a record that is generated now.
func (u User) newOverlap() time.Duration {
	if u.InPlace {
		return NoOverlap
	}
	return u.overlap()
}

// overlap is the one that is asked for now; 0 is none.
func (u User) overlap() time.Duration {
	switch {
	case u.InPlace:
		return 0
	case u.Overlap == 0:
		return DefaultOverlap
	default:
		return u.Overlap
	}
}

// overlapOf is how long what was in use before a record is accepted; 0 is not at all. What is asked for now counts if it belongs to the same
// request. Else the overlap was promised by an earlier request, which its record says.
func (u User) overlapOf(latest Record) time.Duration {
	if latest.Overlap != 0 && u.Request != latest.Request {
		return max(latest.Overlap, 0)
	}
	return u.overlap()
}

// promised is until when the holders of the credential before a drifted one can log in; the zero time if there are none. Another rotation
// would take that from them, as a system accepts two credentials at most.
func (u User) promised(ctx context.Context, stored stored) (time.Time, error) {
	previous, until := stored.previous(), stored.Since.Add(u.overlapOf(stored.latest()))
	if previous.Generation == 0 || !time.Now().Before(until) {
		return time.Time{}, nil
	}
	state, err := u.observe(ctx, previous)
	if err != nil || state != Accepted && state != Present {
		return time.Time{}, err
	}
	return until, nil
}

// supersede takes what was in use before the latest record out of use, if it is time, and else returns when that is.
func (u User) supersede(ctx context.Context, latest Record, beside Beside, since time.Time) (time.Time, error) {
	system, ok := u.System.(Rotator)
	if !ok || !beside.Accepted {
		return time.Time{}, nil
	}
	if until := since.Add(u.overlapOf(latest)); time.Now().Before(until) {
		return until, nil
	}
	if err := system.Retire(ctx, u.Owner, latest, u.others(latest)); err != nil {
		return time.Time{}, fmt.Errorf("take out of use what was before the user %s: %w", latest.Username, err)
	}
	return time.Time{}, nil
}

// beside asks what the system has beside a record. A system that cannot rotate has nothing.
func (u User) beside(ctx context.Context, latest Record) (Beside, error) {
	system, ok := u.System.(Rotator)
	if !ok {
		return Beside{}, nil
	}
	beside, err := system.Superseded(ctx, u.Owner, latest, u.others(latest))
	if err != nil {
		return Beside{}, fmt.Errorf("look what is accepted beside the user %s: %w", latest.Username, err)
	}
	return beside, nil
}

// keep lets the system keep which record it accepts, if it does not yet: its user was made by an earlier release, or taken over.
func (u User) keep(ctx context.Context, latest Record, is seen) error {
	system, ok := u.System.(Rotator)
	if !ok || is.state != Accepted || is.Current.is(latest) {
		return nil
	}
	if err := system.Keep(ctx, u.Owner, latest); err != nil {
		return fmt.Errorf("keep the generation of the user %s: %w", latest.Username, err)
	}
	return nil
}

// checkBehind returns ErrBehind if the system was given a later record than the store has. The store was restored from a backup then, or has
// lost records, and whatever it has must not take the place of what is in use.
func (u User) checkBehind(ctx context.Context, stored stored, is seen) error {
	latest := stored.latest()
	if stored.lacks(is.Latest) {
		return fmt.Errorf("credential %s: the user %s was given generation %d, generated at %s, and the store has generation %d at most: %w; "+
			"restore the later one, or allow to replace it",
			u.Name, is.Latest.Username, is.Latest.Generation, is.Latest.Created.Format(time.RFC3339), latest.Generation, ErrBehind)
	}
	// No crash of ours leaves a user that cannot log in with what readers get, and lets another one log in.
	if !is.Accepted || !is.Latest.IsZero() || is.state != Retired && is.state != Absent || u.unfinished(stored, is) {
		return nil
	}
	if previous := stored.previous(); slices.Contains(u.others(latest), previous.Username) {
		if state, err := u.observe(ctx, previous); err != nil || state == Accepted {
			return err // The system is behind, and not the store.
		}
	}
	return fmt.Errorf("credential %s: readers get the user %s, which is %s, and another user of the owner can log in: %w; restore the later credential, "+
		"or allow to replace it", u.Name, latest.Username, is.state, ErrBehind)
}

// lacks reports whether the store has neither the record nor a later one.
func (s stored) lacks(given Given) bool {
	if given.IsZero() || slices.ContainsFunc(s.Records, given.is) {
		return false
	}
	return given.After(GivenOf(s.latest()))
}

// is reports whether g names a record.
func (g Given) is(record Record) bool {
	return g.Username == record.Username && g.Generation == record.Generation && g.Created.Equal(GivenOf(record).Created)
}

// others are the users that a record is not for.
func (u User) others(latest Record) []string {
	return slices.DeleteFunc(u.logins(), func(login string) bool { return login == latest.Username })
}
