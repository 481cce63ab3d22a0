package credential

import (
	"context"
	"fmt"
	"time"
)

// Revoke answers a Request with InPlace as far as the system rejects the previous credential: it stores a new record and sets it. It tries no login
// and publishes nothing, so the holder of a leaked password cannot delay it: Converge does that afterwards. Without such a Request, Revoke reads the
// store and writes nothing. It is safe to repeat after any error.
func (u User) Revoke(ctx context.Context) error {
	stored, err := u.read(ctx)
	if err != nil || stored.latest().Generation < max(u.Generation, stored.Copy, 1) {
		return err
	}
	_, err = u.revoke(ctx, stored)
	return err
}

// revoke is Revoke with what the store has. It returns what the store has then. After a crash it continues: once the record is stored, no older one is
// set. What else is to be done, or prevents the revocation, is left to settle.
func (u User) revoke(ctx context.Context, from stored) (stored, error) {
	asked := u.InPlace && u.rotates(from.latest())
	if !asked && (!from.unpublished() || !u.replaced(from)) {
		return from, nil
	}
	beside, possible, err := u.revocable(ctx, from)
	if err != nil || !possible || asked && u.overlaps(from, beside) {
		return from, err
	}
	if asked {
		if from, err = u.rotate(ctx, from.latest()); err != nil {
			return from, err
		}
	}
	latest := from.latest()
	if u.overlapOf(latest) > 0 || beside.Current.is(latest) || beside.Current.IsZero() && !asked {
		return from, nil
	}
	return from, u.setInPlace(ctx, from, beside)
}

// revocable returns what the system has beside the latest record, and reports whether the user can get another record: it has the owner's mark, and the
// store is not behind.
func (u User) revocable(ctx context.Context, from stored) (Beside, bool, error) {
	state, err := u.observe(ctx, Record{Username: from.latest().Username})
	if _, err := split(err); err != nil || state != Present && state != Retired {
		return Beside{}, false, err
	}
	beside, err := u.beside(ctx, from.latest())
	_, err = split(err)
	return beside, err == nil && !from.lacks(beside.Latest), err
}

// setInPlace makes the system accept only the latest record.
func (u User) setInPlace(ctx context.Context, from stored, beside Beside) error {
	latest := from.latest()
	if err := u.checkPublish(ctx, latest); err != nil {
		return err
	}
	if _, err := split(u.System.Set(ctx, u.Owner, Assignment{Record: latest, Previous: from.previous()})); err != nil {
		return fmt.Errorf("%s the user %s: %w", set, latest.Username, err)
	}
	system, ok := u.System.(Rotator)
	if !ok || !beside.Accepted {
		return nil
	}
	if _, err := split(system.Retire(ctx, u.Owner, latest, u.others(latest))); err != nil {
		return fmt.Errorf("retire the credential before user %s: %w", latest.Username, err)
	}
	return nil
}

// overlaps reports whether the previous credential is accepted because its overlap has not ended.
func (u User) overlaps(stored stored, beside Beside) bool {
	return beside.Accepted && !stored.unpublished() && time.Now().Before(stored.Since.Add(u.overlapOf(stored.latest())))
}
