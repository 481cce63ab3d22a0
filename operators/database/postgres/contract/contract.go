// Package contract says what the operator expects of a PostgreSQL server, as a test. It runs on real servers and on those of the simulation, so that the
// simulation shows what real servers do.
package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/primary"
)

// World has a primary with the ordinal 0, a standby with the ordinal 1 that streams from it, and no operator.
type World interface {
	Server() engine.Replicated
	// Login returns how the monitor logs in to the server with an ordinal.
	Login(ordinal int) engine.Login
	// Write lets an app write something, and returns its location in the write-ahead log.
	Write() string
	// End ends the primary for good.
	End()
	// Eventually repeats an attempt until it returns nil.
	Eventually(what string, attempt func(ctx context.Context) error)
}

// Names of the slots of the two servers, and of one that does not exist before the standby is promoted.
const slot0, slot1, other = "einmal_0", "einmal_1", "einmal_2"

// Run checks the contract. Afterwards the standby is a primary.
func Run(t *testing.T, w World) {
	t.Helper()
	ctx, server := t.Context(), w.Server()
	wrong := w.Login(0)
	wrong.Password = credential.NewPassword("wrong")
	if err := server.Try(ctx, wrong); !errors.Is(err, engine.ErrRefused) {
		t.Errorf("a wrong password: %v", err)
	}
	follows(t, w)
	for ordinal := range 2 {
		if err := server.Checkpoint(ctx, w.Login(ordinal)); err != nil {
			t.Errorf("a checkpoint of server %d: %v", ordinal, err)
		}
	}
	keepsActiveSlots(t, w)
	before := ask(t, w, 1)
	w.End()
	w.Eventually("the standby gets nothing more", func(ctx context.Context) error {
		if now, err := server.Ask(ctx, w.Login(1)); err != nil || now.Receiving {
			return fmt.Errorf("it says %+v, %w", now, err)
		}
		return nil
	})
	promotes(t, w, before)
}

// follows expects that a standby gets and replays what the primary writes.
func follows(t *testing.T, w World) {
	t.Helper()
	leader, standby := ask(t, w, 0), ask(t, w, 1)
	if leader.Recovering || !standby.Recovering {
		t.Errorf("recovering: the primary %t, the standby %t", leader.Recovering, standby.Recovering)
	}
	if len(standby.Standbys) != 0 || len(standby.Forks) != 0 {
		t.Errorf("the standby says %+v", standby)
	}
	location := w.Write()
	w.Eventually("the standby replays what is written", func(ctx context.Context) error {
		replayed, err := w.Server().Replayed(ctx, w.Login(1), location)
		now, failed := w.Server().Ask(ctx, w.Login(1))
		if err = errors.Join(err, failed); err != nil || !replayed || now.Received <= standby.Received {
			return fmt.Errorf("it has replayed it: %t, received %d after %d: %w", replayed, now.Received, standby.Received, err)
		}
		return nil
	})
	if now := ask(t, w, 1); !now.Receiving || ask(t, w, 0).Receiving {
		t.Errorf("the standby gets something from the primary, and says %+v", now)
	}
	if now := ask(t, w, 1); primary.Diverged(leader.Forks, now.Timeline, now.Received) {
		t.Errorf("the standby %+v has more than the primary had of a timeline: %v", now, leader.Forks)
	}
	const far = "0/FFFFFFF0"
	if replayed, err := w.Server().Replayed(t.Context(), w.Login(1), far); err != nil || replayed {
		t.Errorf("the standby has replayed what nothing has written: %t, %v", replayed, err)
	}
	if replayed, err := w.Server().Replayed(t.Context(), w.Login(0), far); err != nil || !replayed {
		t.Errorf("the primary has not replayed something: %v", err)
	}
}

// keepsActiveSlots expects that the slot of a standby that streams is not dropped.
func keepsActiveSlots(t *testing.T, w World) {
	t.Helper()
	for _, slot := range []string{slot1, other} {
		if err := w.Server().Release(t.Context(), w.Login(0), slot); err != nil {
			t.Errorf("drop the slot %s: %v", slot, err)
		}
	}
	if said := ask(t, w, 0).Standbys; len(said) != 1 || said[0].Slot != slot1 || !said[0].Streams() {
		t.Errorf("the primary says of its standbys: %+v", said)
	}
}

// promotes expects that a standby is promoted once, and has the slots that it is given.
func promotes(t *testing.T, w World, before engine.State) {
	t.Helper()
	for _, slots := range [][]string{{slot0}, {slot0}, {slot0, other}} {
		w.Eventually("the standby is promoted", func(ctx context.Context) error { return w.Server().Promote(ctx, w.Login(1), slots) })
		now := ask(t, w, 1)
		at, left := now.Forks[before.Timeline]
		if now.Recovering || !left || at < before.Received || !slices.Equal(slotsOf(now), slots) {
			t.Errorf("before the promotion with the slots %v: %+v, after it: %+v", slots, before, now)
		}
	}
	if err := w.Server().Release(t.Context(), w.Login(1), other); err != nil {
		t.Errorf("drop a slot: %v", err)
	}
	if left := slotsOf(ask(t, w, 1)); !slices.Equal(left, []string{slot0}) {
		t.Errorf("the slots %v are left", left)
	}
}

// ask asks a server, which answers.
func ask(t *testing.T, w World, ordinal int) engine.State {
	t.Helper()
	state, err := w.Server().Ask(t.Context(), w.Login(ordinal))
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func slotsOf(state engine.State) []string {
	var slots []string
	for _, one := range state.Standbys {
		slots = append(slots, one.Slot)
	}
	return slots
}
