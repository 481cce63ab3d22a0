// Package postgres asks a PostgreSQL server what the operator cannot see in the cluster: whether it accepts a password, how full its volume
// is, with which configuration it runs, and how its standbys are.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/einmal-operators/einmal/credential"
)

// ErrRefused means that the server said that the password is wrong, or that the user does not exist. It says the same in both cases.
var ErrRefused = errors.New("the server refuses the password")

// Limits of a question, from the connection to the answer.
const (
	timeout           = 10 * time.Second
	checkpointTimeout = time.Minute
	promotionTimeout  = 40 * time.Second
)

// Login is how to log in to a server.
type Login struct {
	// Host is the name or the address of the server.
	Host string
	Port uint16
	// Database is the name of the database.
	Database string
	Username string
	Password credential.Password
}

// Server is what the operator asks of servers. Package contract says what it expects.
type Server interface {
	Try(ctx context.Context, login Login) error
	Ask(ctx context.Context, login Login) (State, error)
	Release(ctx context.Context, login Login, slot string) error
	Promoter
}

// Promoter is what the operator asks for when another server becomes the primary.
type Promoter interface {
	Checkpoint(ctx context.Context, login Login) error
	Replayed(ctx context.Context, login Login, location string) (bool, error)
	Promote(ctx context.Context, login Login, slots []string) error
}

// Client logs in to servers. It keeps no connections.
type Client struct {
	// Dial connects to the address of a server. If it is nil, the operating system does.
	Dial pgconn.DialFunc
}

// Try logs in and out. It returns ErrRefused only if the server says so. It executes no statement: the database belongs to others, whose functions
// must not run here.
func (c Client) Try(ctx context.Context, login Login) error {
	return c.within(ctx, login, func(context.Context, *pgx.Conn) error { return nil })
}

// State is what a server says of itself.
type State struct {
	// Used is how full its volume is, in percent. The script of the Pod measures it every five seconds.
	Used int32
	// Configuration is what manifest.Configuration returned for the configuration that the server has read last, or "".
	Configuration string
	// Refused says which parameters of its configuration the server does not accept, and why. It is "" if there are none.
	Refused string
	// Pending names the parameters that take effect only after a restart. It is "" if there are none.
	Pending string
	// Kept names the parameters that a standby has not lowered, because the primary had the higher values when the standby started: see server.sh.
	Kept string
	// Recovering reports whether the server is a standby.
	Recovering bool
	// Timeline is the last timeline of which a standby has received something, and Received how much of the write-ahead log it has, in bytes. They say nothing
	// of a primary. The control file of a standby would name the timeline too, but only some time later.
	Timeline, Received int64
	// Forks are the timelines that the primary has left, with where it left them, in bytes of the write-ahead log. A standby says nothing of them.
	Forks map[int64]int64
	// Standbys are the standbys that have a slot, in the order of the slots. A standby has none itself.
	Standbys []Standby
}

// Standby is what a primary says of a standby.
type Standby struct {
	// Slot is the name of its replication slot.
	Slot string
	// Lost reports whether the primary has deleted what the standby needs.
	Lost bool
	// Copying reports whether it copies the primary.
	Copying bool
	// State is that of its connection in pg_stat_replication, such as "streaming" or "catchup". It is "" if there is none.
	State string
	// Lag is how many bytes of the write-ahead log it has not replayed.
	Lag int64
}

// Streams reports whether a standby gets what the primary writes. One that the primary does not know, which is nil, does not.
func (s *Standby) Streams() bool { return s != nil && s.State == "streaming" && !s.Copying }

// Ask asks a server for its state. Only the monitor may ask.
func (c Client) Ask(ctx context.Context, login Login) (State, error) {
	const question = `select einmal.volume(), coalesce(current_setting('einmal.configuration', true), ''), einmal.refused_parameters(),
		coalesce((select string_agg(name, ', ' order by name) from pg_settings
			where pending_restart and not (source = 'command line' and pg_is_in_recovery())), ''),
		coalesce((select string_agg(name, ', ' order by name) from pg_settings
			where pending_restart and source = 'command line' and pg_is_in_recovery()), ''),
		pg_is_in_recovery(), einmal.timeline(),
		coalesce(pg_wal_lsn_diff(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0'), 0)::bigint, einmal.forks(), einmal.standbys()`
	var state State
	var volume string
	err := c.within(ctx, login, func(ctx context.Context, connection *pgx.Conn) error {
		return connection.QueryRow(ctx, question).Scan(&volume, &state.Configuration, &state.Refused, &state.Pending, &state.Kept, &state.Recovering,
			&state.Timeline, &state.Received, &state.Forks, &state.Standbys)
	})
	if err != nil {
		return State{}, fmt.Errorf("ask the server for its state: %w", err)
	}
	state.Used, err = percent(volume)
	return state, err
}

// Release drops the slot of a standby that is not connected, so that the server keeps nothing for it any more. Only the monitor may do so. It does nothing
// if there is no such slot.
func (c Client) Release(ctx context.Context, login Login, slot string) error {
	err := c.within(ctx, login, func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, "select einmal.release($1)", slot)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop the slot %s: %w", slot, err)
	}
	return nil
}

// Checkpoint lets a server write what it has in memory, so that it ends quickly later. That can take a minute. Only the monitor may do so.
func (c Client) Checkpoint(ctx context.Context, login Login) error {
	err := c.withinTime(ctx, checkpointTimeout, login, func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, "checkpoint")
		return err
	})
	if err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	return nil
}

// Replayed reports whether a standby has replayed the record of the write-ahead log that begins at a location, such as 0/3000028. A server that is not a
// standby has.
func (c Client) Replayed(ctx context.Context, login Login, location string) (bool, error) {
	var replayed bool
	err := c.within(ctx, login, func(ctx context.Context, connection *pgx.Conn) error {
		return connection.QueryRow(ctx, "select not pg_is_in_recovery() or coalesce(pg_last_wal_replay_lsn() > $1::text::pg_lsn, false)", location).Scan(&replayed)
	})
	if err != nil {
		return false, fmt.Errorf("ask the standby what it has replayed: %w", err)
	}
	return replayed, nil
}

// Promote makes a standby a primary, with slots for the other servers, and returns when it accepts writes. It does nothing if the server is one with these
// slots. Only the monitor may do so.
func (c Client) Promote(ctx context.Context, login Login, slots []string) error {
	var promoted bool
	err := c.withinTime(ctx, promotionTimeout, login, func(ctx context.Context, connection *pgx.Conn) error {
		return connection.QueryRow(ctx, "select einmal.promote($1)", slots).Scan(&promoted)
	})
	switch {
	case err != nil:
		return fmt.Errorf("promote the standby: %w", err)
	case !promoted:
		return errors.New("promote the standby: it does not accept writes yet")
	}
	return nil
}

// percent returns how full a volume is whose size and free space are given, in any unit.
func percent(text string) (int32, error) {
	var size, free int64
	if _, err := fmt.Sscanf(text, "%d %d", &size, &free); err != nil || size <= 0 || free < 0 || free > size {
		return 0, fmt.Errorf("the server says %q of its volume, want its size and what is free", text)
	}
	const whole = 100
	return int32(whole - whole*free/size), nil //nolint:gosec // From 0 to 100.
}

// within calls a function with a connection.
func (c Client) within(ctx context.Context, login Login, do func(context.Context, *pgx.Conn) error) error {
	return c.withinTime(ctx, timeout, login, do)
}

func (c Client) withinTime(ctx context.Context, limit time.Duration, login Login, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	settings, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return fmt.Errorf("prepare a connection: %w", err)
	}
	settings.Host, settings.Port, settings.Database = login.Host, login.Port, login.Database
	settings.User, settings.Password = login.Username, login.Password.Reveal()
	settings.RequireAuth = "scram-sha-256" // No other method keeps the password from a server that pretends to be this one.
	settings.Fallbacks = nil
	if c.Dial != nil {
		settings.DialFunc = c.Dial
	}
	settings.RuntimeParams = map[string]string{"application_name": "databases.einmal.dev", "search_path": "pg_catalog, pg_temp"}
	connection, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		return explain(login, err)
	}
	defer func() { _ = connection.Close(ctx) }() // The server ends the session in any case.
	return do(ctx, connection)
}

// explain returns ErrRefused for the server's own refusal.
func explain(login Login, err error) error {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		const wrongPassword = "28P01"
		if answer.Code == wrongPassword {
			return fmt.Errorf("log in as %s: %w", login.Username, ErrRefused)
		}
		return fmt.Errorf("log in as %s: the server answers %s (%s)", login.Username, answer.Message, answer.Code)
	}
	return fmt.Errorf("log in as %s: %w", login.Username, err)
}
