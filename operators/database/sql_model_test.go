package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// Try logs in to the only database that there is.
func (n *modelNode) Try(_ context.Context, login engine.Login) error {
	if n.cut {
		return errors.New("dial tcp: timeout")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, volume := range n.volumes {
		if password, known := volume.passwords[login.Username]; !known || password != login.Password.Reveal() {
			return engine.ErrRefused
		}
	}
	if n.full && login.Username == ordersDB().Spec.Auth.Username {
		return engine.ErrFull
	}
	return nil
}

// reach returns the server that a login leads to, and the name of its Database.
func (n *modelNode) reach(ctx context.Context, login engine.Login) (*configuration, string, error) {
	if err := n.Try(ctx, login); err != nil {
		return nil, "", err
	}
	name, _, _ := strings.Cut(login.Host, ".")
	database, through := strings.CutSuffix(name, "-rw")
	if through {
		leader := n.leader(database)
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, server := range n.servers {
			if server.data == leader {
				return server, database, nil
			}
		}
		return nil, "", errors.New("dial tcp: connection refused")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if server := n.servers[name]; server != nil && !n.silent[name] {
		return server, name[:strings.LastIndex(name, "-")], nil
	}
	return nil, "", errors.New("dial tcp: connection refused")
}

// Ask returns how full the volume is, what the server says of its configuration, and what the primary says of standbys. Before each answer of the primary,
// an app writes something.
func (n *modelNode) Ask(ctx context.Context, login engine.Login) (engine.State, error) {
	server, database, err := n.reach(ctx, login)
	if err != nil {
		return engine.State{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	state := engine.State{Used: n.used, Configuration: server.loaded, Refused: n.refused, Recovering: server.data.copied, Unlogged: n.unlogged, Timeline: int64(server.data.timeline), Received: int64(server.data.written)}
	switch {
	case server.wanted == server.connections:
	case server.kept && server.data.copied:
		state.Kept = "max_connections"
	default:
		state.Pending = "max_connections"
	}
	if server.data.copied {
		name, _, _ := strings.Cut(login.Host, ".")
		for _, primary := range n.servers {
			state.Receiving = state.Receiving || !primary.data.copied && n.streams(manifest.Slot(ordinalOf(name)), database, primary.data)
		}
		return state, nil
	}
	if data := server.data; data.timeline > 0 {
		state.Forks = map[int64]int64{int64(data.timeline - 1): int64(data.forked)}
	}
	if n.unsteady {
		n.used = 50 - n.used
	}
	n.write(server.data)
	for _, slot := range slices.Sorted(maps.Keys(n.slots)) {
		one := engine.Standby{Slot: slot, Lost: !n.slots[slot], Lag: n.lag}
		if n.streams(slot, database, server.data) {
			one.State = "streaming"
		}
		state.Standbys = append(state.Standbys, one)
	}
	return state, nil
}

// write writes something, which standbys get that are connected.
func (n *modelNode) write(primary *volume) {
	n.written++
	primary.written = n.written
	for name, server := range n.servers {
		if server.data.copied && n.connected[name] && server.data.follows(primary) {
			server.data.written, server.data.timeline, server.data.connections = n.written, primary.timeline, primary.connections
			if server.connections < primary.connections {
				n.w.Errorf("the standby in %s accepts fewer connections than the primary, and stops to follow it", name)
			}
		}
	}
}

// connect sets whether the standby in a Pod gets what the primary writes.
func (n *modelNode) connect(pod string, connected bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connected[pod] = connected
}

// streams reports whether the standby with a slot gets what the primary writes.
func (n *modelNode) streams(slot, database string, primary *volume) bool {
	name := database + "-" + strings.TrimPrefix(slot, "einmal_")
	standby := n.servers[name]
	return standby != nil && n.connected[name] && n.slots[slot] && standby.data.follows(primary)
}

// Release drops a slot that is not in use.
func (n *modelNode) Release(ctx context.Context, login engine.Login, slot string) error {
	server, database, err := n.reach(ctx, login)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.streams(slot, database, server.data) {
		delete(n.slots, slot)
	}
	return nil
}

// Checkpoint does nothing: the servers of the model end at once.
func (n *modelNode) Checkpoint(ctx context.Context, login engine.Login) error {
	_, _, err := n.reach(ctx, login)
	return err
}

// Replayed reports whether a standby has all up to a location.
func (n *modelNode) Replayed(ctx context.Context, login engine.Login, location string) (bool, error) {
	server, _, err := n.reach(ctx, login)
	if err != nil {
		return false, err
	}
	var written int
	if _, err := fmt.Sscanf(location, "0/%X", &written); err != nil {
		return false, fmt.Errorf("location %q: %w", location, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return !server.data.copied || server.data.written >= written, nil
}

// Promote lets a standby accept writes. It expects that nothing is lost that apps have not given up.
func (n *modelNode) Promote(ctx context.Context, login engine.Login, slots []string) error {
	server, _, err := n.reach(ctx, login)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.stays:
		return errors.New("the server does not accept writes yet")
	case !server.data.copied:
		n.addSlots(slots)
		return nil
	}
	if n.givenUp {
		n.written = server.data.written
	}
	if server.data.written != n.written {
		n.w.Errorf("a standby is promoted that has %d of what apps have written, want %d", server.data.written, n.written)
	}
	server.data.copied, server.data.connections = false, server.connections
	server.data.timeline, server.data.forked = server.data.timeline+1, server.data.written
	n.onlyOne()
	n.slots = map[string]bool{}
	n.addSlots(slots)
	return nil
}

// addSlots makes the slots of a primary that it does not have.
func (n *modelNode) addSlots(slots []string) {
	for _, slot := range slots {
		if _, has := n.slots[slot]; !has {
			n.slots[slot] = true
		}
	}
}
