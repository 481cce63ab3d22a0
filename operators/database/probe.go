package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

const (
	// probeInterval is the time between two probes of a server without standbys.
	probeInterval = time.Minute
	// pollInterval is the time between two probes of a server with standbys.
	pollInterval = 10 * time.Second
	// reconnect is how soon a server is probed again that could not be reached.
	reconnect = 2 * time.Second
	// reload is how soon a server is asked again that has not read its new configuration. The kubelet can take a minute to update the file.
	reload = 5 * time.Second
	// patience is how long a server cannot be reached before the status says so: the nodes learn of a new Pod or Service some moments later.
	patience = 15 * time.Second
	// briefly limits a question to a standby, so that one that cannot be reached does not delay the others for long.
	briefly = 3 * time.Second
	// apart is the shortest time between two reports: one that follows another in the same reconciliation would contradict it.
	apart = time.Second
	// almostFull is how full a volume may be, in percent.
	almostFull = 90
	// drift is how much the status may differ from how full the volume is, in percent, so that it is seldom written.
	drift = 5
)

// probe is the last probe of the servers.
type probe struct {
	// at is when it began.
	at       time.Time
	pod      types.UID
	password credential.Password
	// login is why the app's login fails, or nil.
	login error
	// unreachable is since when the server could not be reached. It is zero if it could.
	unreachable time.Time
	// state is what the server has said of itself last, and nil if it has said nothing. The server has said it in this probe if answered is true.
	state    *engine.State
	answered bool
	// ready are the Pods of the standbys that accepted connections, and standbys what they have said of themselves.
	ready    []types.UID
	standbys map[types.UID]engine.State
}

// wait returns when to probe again before the interval has passed, or nil.
func (f findings) wait(db *v1.Database) error {
	switch {
	case f.probe == nil:
		return nil
	case !f.probe.unreachable.IsZero():
		return einmal.RequeueAfter(reconnect)
	case f.parameters.reloading(f.probe):
		return einmal.RequeueAfter(reload)
	case f.silent(db) != nil:
		return einmal.RequeueAfter(switchoverDelay)
	}
	return nil
}

// brief reports whether the server could not be reached only for some moments.
func (p *probe) brief() bool { return !p.unreachable.IsZero() && time.Since(p.unreachable) < patience }

// probeAgain probes servers that have been probed before: they send no events when they refuse a password, when a volume fills or when a standby is cut
// off. What has events is as provision has found it last.
func (d *databases) probeAgain(ctx context.Context, c *change) error {
	found := *einmal.Memo[findings](c)
	if found.probe == nil || !found.available() || moving(c.Object) != nil {
		return nil
	}
	if len(found.standbys) == 0 && found.wait(c.Object) == nil && time.Since(found.probe.at) < probeInterval-pollInterval/2 {
		return nil
	}
	if time.Since(found.reported) < apart {
		return einmal.RequeueAfter(apart)
	}
	found.probe = d.probe(ctx, c, found)
	err := d.act(ctx, c, found)
	report(c, found)
	return orElse(err, found.wait(c.Object))
}

// act does what the last probe asks for.
func (d *databases) act(ctx context.Context, c *change, found findings) error {
	return errors.Join(selectStandbys(ctx, c, found), d.release(ctx, c, found), restart(ctx, c, found))
}

// probeNew probes servers that accept connections, unless it has done so in these Pods with this password. It returns the last probe of the Pods, or nil.
func (d *databases) probeNew(ctx context.Context, c *change, found findings) *probe {
	last := einmal.Memo[findings](c).probe
	switch {
	case !found.available():
		return nil
	case last != nil && last.unreachable.IsZero() && !found.parameters.reloading(last) && last.pod == found.pod.UID &&
		last.password == found.credentials.app.Password && slices.Equal(last.ready, found.readyStandbys()):
		return last
	}
	return d.probe(ctx, c, found)
}

// readyStandbys returns the Pods of the standbys that accept connections.
func (o observed) readyStandbys() (ready []types.UID) {
	for _, one := range o.standbys {
		if isReady(one.pod) {
			ready = append(ready, one.pod.UID)
		}
	}
	return ready
}

// probe logs in as the app and as the monitor. It does not try a password of the app that is lost.
func (d *databases) probe(ctx context.Context, c *change, found findings) *probe {
	app := found.credentials.app
	made := &probe{at: time.Now(), pod: found.pod.UID, password: app.Password, ready: found.readyStandbys()}
	last := einmal.Memo[findings](c).probe
	if last != nil && last.pod != made.pod {
		last = nil
	}
	if last != nil {
		made.state = last.state
	}
	made.standbys = d.askStandbys(ctx, c, found)
	if app.Generation > 0 {
		made.login = d.clients.of(c.Object).Try(ctx, login(c.Object, app, c.Object.Spec.Auth.Database))
	}
	if answers := errors.Is(made.login, engine.ErrRefused) || errors.Is(made.login, engine.ErrFull); made.login != nil && !answers {
		made.unreachable = time.Now()
		if last != nil && !last.unreachable.IsZero() {
			made.unreachable = last.unreachable
		}
		return made
	}
	state, err := d.clients.of(c.Object).Ask(ctx, asMonitor(c.Object, found))
	if err != nil {
		c.Log.Warn("could not ask the server how full its volume is and which parameters it has", "error", err)
		return made
	}
	made.state, made.answered = &state, true
	return made
}

// askStandbys asks the standbys that accept connections. One that does not answer is left out: what the primary says of it matters more.
func (d *databases) askStandbys(ctx context.Context, c *change, found findings) map[types.UID]engine.State {
	states := map[types.UID]engine.State{}
	for _, one := range found.wanted(c.Object) {
		if !isReady(one.pod) {
			continue
		}
		state, err := d.askBriefly(ctx, c.Object, found, one)
		if err != nil {
			c.Log.Info("could not ask a standby for its state", "pod", one.name, "error", err)
			continue
		}
		states[one.pod.UID] = state
	}
	return states
}

// askBriefly asks a standby for its state, and returns an error if it does not answer within the time limit.
func (d *databases) askBriefly(ctx context.Context, db *v1.Database, found findings, one standby) (engine.State, error) {
	limited, cancel := context.WithTimeout(ctx, briefly)
	defer cancel()
	return d.clients.of(db).Ask(limited, direct(db, found, one.name))
}

// login returns how to log in through the Service, as apps do.
func login(db *v1.Database, as credential.Record, database string) engine.Login {
	return engine.Login{
		Host: fmt.Sprintf("%s.%s.svc", manifest.ReadWriteService(db), db.Namespace), Port: uint16(manifest.Port(db)), //nolint:gosec // A port.
		Database: database, Username: as.Username, Password: as.Password,
	}
}

// asMonitor returns how the operator logs in to the primary.
func asMonitor(db *v1.Database, found findings) engine.Login {
	return login(db, found.credentials.monitor, manifest.MonitorDatabase(db))
}

// direct returns how the operator logs in to the server of a Pod.
func direct(db *v1.Database, found findings, pod string) engine.Login {
	to := asMonitor(db, found)
	to.Host = fmt.Sprintf("%s.%s.%s.svc", pod, manifest.PodService(db), db.Namespace)
	return to
}

// steady returns how full a volume is, for the status: what the status says, unless that has changed much.
func steady(said *int32, used int32) *int32 {
	if said != nil && max(*said-used, used-*said) < drift && (*said >= almostFull || used < almostFull) {
		return said
	}
	return &used
}
