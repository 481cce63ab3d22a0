// Package postgres asks PostgreSQL servers what the operator cannot see in the cluster: see package engine.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/einmal-operators/einmal/operators/database/engine"
)

// Limits of a question, from the connection to the answer.
const (
	timeout           = 10 * time.Second
	checkpointTimeout = time.Minute
	promotionTimeout  = 40 * time.Second
)

const (
	// longestMessage is the length in bytes of the longest message that is read from a server, and longestAnswer that of all messages of a session. The
	// answers to all questions are far shorter. A server that pretends to be this one, or the image of a tenant, could send more than the operator's memory.
	longestMessage = 256 << 10
	longestAnswer  = 1 << 20
)

// ownSettings are startup parameters, which take precedence over the parameters of a Database and over settings of its roles. A transaction cannot be
// serializable on a standby, and a timeout would cancel a checkpoint. The operator has its own timeouts.
func ownSettings() map[string]string {
	return map[string]string{
		"application_name": "databases.einmal.dev", "search_path": "pg_catalog, pg_temp", "client_encoding": "UTF8", "client_min_messages": "error",
		"default_transaction_isolation": "read committed", "default_transaction_read_only": "off", "default_transaction_deferrable": "off",
		"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0",
		"work_mem": "64MB", // The catalogs need a temporary file otherwise, which temp_file_limit can forbid.
	}
}

// Client logs in to servers. It keeps no connections.
type Client struct {
	// Dial connects to the address of a server. If it is nil, the operating system does.
	Dial pgconn.DialFunc
}

// Try logs in and out, and executes no statement.
func (c Client) Try(ctx context.Context, login engine.Login) error {
	return c.within(ctx, login, func(context.Context, *pgx.Conn) error { return nil })
}

// undefinedFunction is the code of an error about a function that does not exist.
const undefinedFunction = "42883"

// askEarlier asks a server that an earlier operator has started, which has not all functions yet: see migrate in server.sh. It leaves out what is missing.
func askEarlier(ctx context.Context, connection *pgx.Conn, question string, ask func(string) error) error {
	var has []string
	err := connection.QueryRow(ctx, "select coalesce(array_agg(proname::text), '{}') from pg_proc where pronamespace = 'einmal'::regnamespace").Scan(&has)
	if err != nil {
		return err
	}
	for name, instead := range map[string]string{"timeline": "0", "forks": "null::json", "receiving": "false", "unlogged": "false"} {
		if !slices.Contains(has, name) {
			question = strings.Replace(question, "einmal."+name+"()", instead, 1)
		}
	}
	return ask(question)
}

// Ask asks a server for its state. Only the monitor may ask.
func (c Client) Ask(ctx context.Context, login engine.Login) (engine.State, error) {
	const question = `select einmal.volume(), coalesce(current_setting('einmal.configuration', true), ''), einmal.refused_parameters(),
		coalesce((select string_agg(name, ', ' order by name) from pg_settings
			where pending_restart and not (source = 'command line' and pg_is_in_recovery())), ''),
		coalesce((select string_agg(name, ', ' order by name) from pg_settings
			where pending_restart and source = 'command line' and pg_is_in_recovery()), ''),
		pg_is_in_recovery(), einmal.timeline(),
		coalesce(pg_wal_lsn_diff(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0'), 0)::bigint, einmal.forks(), einmal.standbys(), einmal.receiving(), einmal.unlogged()`
	var state engine.State
	var volume string
	err := c.within(ctx, login, func(ctx context.Context, connection *pgx.Conn) error {
		ask := func(question string) error {
			return connection.QueryRow(ctx, question).Scan(&volume, &state.Configuration, &state.Refused, &state.Pending, &state.Kept, &state.Recovering,
				&state.Timeline, &state.Received, &state.Forks, &state.Standbys, &state.Receiving, &state.Unlogged)
		}
		err := ask(question)
		if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.Code == undefinedFunction {
			return askEarlier(ctx, connection, question, ask)
		}
		return err
	})
	if err != nil {
		return engine.State{}, fmt.Errorf("ask the server for its state: %w", err)
	}
	state.Used, err = engine.UsedPercent(volume)
	return state, err
}

// Release drops the slot of a standby that is not connected.
func (c Client) Release(ctx context.Context, login engine.Login, slot string) error {
	err := c.within(ctx, login, func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, "select einmal.release($1)", slot)
		return err
	})
	if err != nil {
		return fmt.Errorf("drop the slot %s: %w", slot, err)
	}
	return nil
}

// Checkpoint lets a server write what it has in memory.
func (c Client) Checkpoint(ctx context.Context, login engine.Login) error {
	err := c.withinTime(ctx, checkpointTimeout, login, func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, "checkpoint")
		return err
	})
	if err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	return nil
}

// Replayed reports whether a standby has replayed the record of the write-ahead log that begins at a location.
func (c Client) Replayed(ctx context.Context, login engine.Login, location string) (bool, error) {
	var replayed bool
	err := c.within(ctx, login, func(ctx context.Context, connection *pgx.Conn) error {
		return connection.QueryRow(ctx, "select not pg_is_in_recovery() or coalesce(pg_last_wal_replay_lsn() > $1::text::pg_lsn, false)", location).Scan(&replayed)
	})
	if err != nil {
		return false, fmt.Errorf("ask the standby what it has replayed: %w", err)
	}
	return replayed, nil
}

// Promote makes a standby a primary, with slots for the other servers.
func (c Client) Promote(ctx context.Context, login engine.Login, slots []string) error {
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

// within calls a function with a connection.
func (c Client) within(ctx context.Context, login engine.Login, do func(context.Context, *pgx.Conn) error) error {
	return c.withinTime(ctx, timeout, login, do)
}

func (c Client) withinTime(ctx context.Context, limit time.Duration, login engine.Login, do func(context.Context, *pgx.Conn) error) error {
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
	dial := settings.DialFunc
	if c.Dial != nil {
		dial = c.Dial
	}
	settings.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &bounded{Conn: connection, left: longestAnswer}, nil
	}
	settings.MaxProtocolMessageBodyLen = longestMessage
	settings.RuntimeParams = ownSettings()
	connection, err := pgx.ConnectConfig(ctx, settings)
	if err != nil {
		return explain(login, err)
	}
	defer func() { _ = connection.Close(ctx) }() // The server ends the session in any case.
	return do(ctx, connection)
}

// bounded is a connection from which only so many bytes can be read.
type bounded struct {
	net.Conn

	left int
}

// Read reads up to the limit.
func (b *bounded) Read(buffer []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server sends more than %d bytes", longestAnswer)
	}
	n, err := b.Conn.Read(buffer[:min(len(buffer), b.left)])
	b.left -= n
	return n, err
}

// explain returns engine.ErrRefused, engine.ErrFull and engine.AnswerError for the server's own refusals.
func explain(login engine.Login, err error) error {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return fmt.Errorf("log in as %s: %w", login.Username, err)
	}
	words := engine.NewAnswerError(answer.Message, answer.Code)
	switch answer.Code {
	case "28P01": // invalid_password
		return fmt.Errorf("log in as %s: %w", login.Username, engine.ErrRefused)
	case "53300": // too_many_connections
		return fmt.Errorf("log in as %s: %w: %w", login.Username, engine.ErrFull, words)
	case "28000": // invalid_authorization_specification
		if !strings.Contains(answer.Message, "pg_hba.conf") { // A login that this file refuses has the same code.
			words.Remedy = fmt.Sprintf(`alter role "%s" login`, login.Username)
		}
	case "3D000": // invalid_catalog_name
		words.Remedy = fmt.Sprintf(`create the database "%s", or give it its name again`, login.Database)
	case "42501": // insufficient_privilege
		words.Remedy = fmt.Sprintf(`grant connect on database "%s" to "%s"`, login.Database, login.Username)
	case "57P03": // cannot_connect_now
		words.Passes = true
	}
	return fmt.Errorf("log in as %s: %w", login.Username, words)
}
