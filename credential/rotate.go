package credential

import (
	"context"
	"errors"
	"fmt"
)

// advance settles the stored record and then answers the Request.
func (u User) advance(ctx context.Context, stored stored) (Outcome, error) {
	stored, err := u.revoke(ctx, stored)
	if err != nil {
		return Outcome{}, err
	}
	latest := stored.latest()
	outcome, err := u.settle(ctx, stored)
	_, failed := split(err)
	drifted := errors.Is(failed, ErrDrifted)
	if failed != nil && !drifted || errors.Is(err, ErrPartial) && !u.InPlace || !u.rotates(latest) || !drifted && outcome.Record != latest {
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
	next, err := u.rotate(ctx, latest)
	if err != nil {
		return Outcome{}, err
	}
	return u.settle(ctx, next)
}

// rotate generates the record after the latest one, and returns what the store has then. It stores no record that readers cannot be given.
func (u User) rotate(ctx context.Context, latest Record) (stored, error) {
	made, err := u.newRecord(draft{latest.Generation + 1, u.next(latest), u.newOverlap(), latest.Created})
	if err != nil {
		return stored{}, err
	}
	if err := u.checkPublish(ctx, made); err != nil {
		return stored{}, err
	}
	next, err := u.keep(ctx, made)
	next.Records = append([]Record{latest}, next.Records...)
	return next, err
}

// checkPublish tests whether readers can be given a record. Otherwise they would keep a password that the system rejects.
func (u User) checkPublish(ctx context.Context, record Record) error {
	if err := u.Store.CheckPublish(ctx, u.Name, u.Owner, record); err != nil {
		return fmt.Errorf("credential %s: %w", u.Name, err)
	}
	return nil
}

// next returns the user of the record of a rotation.
func (u User) next(latest Record) string {
	if u.InPlace {
		return latest.Username
	}
	return u.Once.next(latest)
}
