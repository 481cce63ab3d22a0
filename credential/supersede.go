package credential

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// newOverlap returns the overlap of a record that is generated now.
func (u User) newOverlap() time.Duration {
	if u.InPlace {
		return NoOverlap
	}
	return u.overlap()
}

// overlap returns the requested overlap; 0 means none.
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

// overlapOf returns how long the system accepts the previous credential after the latest record is published; 0 means not at all. The Overlap
// of the User applies if it belongs to the same request. Otherwise the overlap that is stored with the record applies.
func (u User) overlapOf(latest Record) time.Duration {
	if latest.Overlap != 0 && u.Request != latest.Request {
		return max(latest.Overlap, 0)
	}
	return u.overlap()
}

// promised returns until when the previous credential must be accepted while the latest one has drifted; the zero time if it is not accepted.
// A rotation before that time would end it, because a system accepts at most two credentials.
func (u User) promised(ctx context.Context, stored stored) (time.Time, error) {
	previous, until := stored.previous(), stored.Since.Add(u.overlapOf(stored.latest()))
	if previous.Generation == 0 || !time.Now().Before(until) {
		return time.Time{}, nil
	}
	state, err := u.observe(ctx, previous)
	if _, err = split(err); err != nil || state != Accepted && state != Present {
		return time.Time{}, err
	}
	return until, nil
}

// supersede retires the credentials before the latest record if their overlap has ended. Otherwise it returns when the overlap ends.
func (u User) supersede(ctx context.Context, latest Record, beside Beside, since time.Time) (time.Time, error) {
	system, ok := u.System.(Rotator)
	if !ok || !beside.Accepted {
		return time.Time{}, nil
	}
	if until := since.Add(u.overlapOf(latest)); time.Now().Before(until) {
		return until, nil
	}
	if err := system.Retire(ctx, u.Owner, latest, u.others(latest)); err != nil {
		return time.Time{}, fmt.Errorf("retire the credential before user %s: %w", latest.Username, err)
	}
	return time.Time{}, nil
}

// endOverlap retires the credentials before the latest record if their overlap has ended, although the latest one could not be tried. It was proved before
// it was published. So its holder cannot keep the previous one accepted with a login that hangs.
func (u User) endOverlap(ctx context.Context, stored stored) error {
	if stored.unpublished() || stored.previous().Generation == 0 {
		return nil
	}
	beside, possible, err := u.revocable(ctx, stored)
	if err != nil || !possible {
		return err
	}
	_, err = u.supersede(ctx, stored.latest(), beside, stored.Since)
	return err
}

// beside returns what the system has in addition to a record. For a system that is not a Rotator, it returns nothing.
func (u User) beside(ctx context.Context, latest Record) (Beside, error) {
	system, ok := u.System.(Rotator)
	if !ok {
		return Beside{}, nil
	}
	beside, err := system.Superseded(ctx, u.Owner, latest, u.others(latest))
	if err != nil {
		return beside, fmt.Errorf("read other credentials of user %s: %w", latest.Username, err)
	}
	return beside, nil
}

// checkBehind returns ErrBehind if the system got a later record than the store has. Then the store was restored from a backup, or has lost
// records, and an older record must not replace the one in use.
func (u User) checkBehind(stored stored, latest Given) error {
	if !stored.lacks(latest) {
		return nil
	}
	return fmt.Errorf("credential %s: the user %s was given generation %d, generated at %s, and the store has generation %d at most: %w; "+
		"restore the later one, or allow replacing it",
		u.Name, latest.Username, latest.Generation, latest.Created.Format(time.RFC3339), stored.latest().Generation, ErrBehind)
}

// lacks reports whether the store has neither the record nor a later one.
func (s stored) lacks(given Given) bool {
	if given.IsZero() || slices.ContainsFunc(s.Records, given.is) {
		return false
	}
	return given.After(GivenOf(s.latest()))
}

// is reports whether g names this record.
func (g Given) is(record Record) bool {
	return g.Username == record.Username && g.Generation == record.Generation && g.Created.Equal(GivenOf(record).Created)
}

// others returns the users that a record is not for.
func (u User) others(latest Record) []string {
	return slices.DeleteFunc(u.logins(), func(login string) bool { return login == latest.Username })
}
