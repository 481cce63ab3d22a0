// Package mariadb asks MariaDB servers what the operator cannot see in the cluster: see package engine.
package mariadb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/einmal-operators/einmal/operators/database/engine"
)

// timeout limits a question, from the connection to the answer.
const timeout = 10 * time.Second

// Client logs in to servers. It keeps no connections.
type Client struct {
	// Dial connects to the address of a server. If it is nil, the operating system does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

var _ engine.Server = Client{}

// Try logs in and out, and executes no statement.
func (c Client) Try(ctx context.Context, login engine.Login) error {
	return c.within(ctx, login, func(context.Context, driver.Conn) error { return nil })
}

// Ask asks a server for its state. Only the monitor may ask. The state says how full the volume is and with which configuration the server has started.
func (c Client) Ask(ctx context.Context, login engine.Login) (engine.State, error) {
	var answer string
	err := c.within(ctx, login, func(ctx context.Context, connection driver.Conn) (err error) {
		answer, err = query(ctx, connection, "select concat(einmal.volume(), einmal.configuration())")
		return err
	})
	if err != nil {
		return engine.State{}, fmt.Errorf("ask the server for its state: %w", err)
	}
	volume, configuration, _ := strings.Cut(answer, "\n") // The first file has one line.
	used, err := engine.UsedPercent(volume)
	return engine.State{Used: used, Configuration: strings.TrimSpace(configuration)}, err
}

// within calls a function with a connection.
func (c Client) within(ctx context.Context, login engine.Login, do func(context.Context, driver.Conn) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	guard := &guard{left: limit}
	connector, err := mysql.NewConnector(c.settings(login, guard))
	if err != nil {
		return fmt.Errorf("prepare a connection: %w", err)
	}
	defer func() {
		if failed := recover(); failed != nil { // The driver panics on some malformed packets.
			err = fmt.Errorf("log in as %s: the server sends a malformed packet: %v", login.Username, failed)
		}
	}()
	connection, err := connector.Connect(ctx)
	if err != nil {
		return explain(login, guard.cause(err))
	}
	defer func() { _ = connection.Close() }() // The server ends the session in any case.
	return guard.cause(do(ctx, connection))
}

// settings returns how the driver logs in. With these settings the driver sends no statement of its own. It would ask for the largest packet if
// MaxAllowedPacket were 0, send SET NAMES for the option Charset, and SET for Params. It sends a file that a server asks for only with AllowAllFiles or if
// the file is registered. It logs in by mysql_clear_password only with AllowCleartextPasswords, and by mysql_old_password only with AllowOldPasswords.
func (c Client) settings(login engine.Login, guard *guard) *mysql.Config {
	settings := mysql.NewConfig()
	settings.User, settings.Passwd, settings.DBName = login.Username, login.Password.Reveal(), login.Database
	settings.Net, settings.Addr = "tcp", net.JoinHostPort(login.Host, strconv.Itoa(int(login.Port)))
	settings.Logger = &mysql.NopLogger{} // The errors say the same.
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	settings.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		guard.Conn = connection
		return guard, nil
	}
	return settings
}

// query returns the only value of a result, or "" if it is null.
func query(ctx context.Context, connection driver.Conn, text string) (string, error) {
	queryer, ok := connection.(driver.QueryerContext)
	if !ok {
		return "", errors.New("the driver cannot execute a statement")
	}
	rows, err := queryer.QueryContext(ctx, text, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }() // The connection is not used again.
	values := make([]driver.Value, 1)
	if err := rows.Next(values); err != nil {
		return "", err
	}
	value, _ := values[0].([]byte)
	return string(value), nil
}

// explain returns engine.ErrRefused, engine.ErrFull and engine.AnswerError for the server's own refusals.
func explain(login engine.Login, err error) error {
	answer, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return fmt.Errorf("log in as %s: %w", login.Username, err)
	}
	words := engine.NewAnswerError(answer.Message, strconv.Itoa(int(answer.Number)))
	switch answer.Number {
	case 1045, 1698: // ER_ACCESS_DENIED_ERROR, ER_ACCESS_DENIED_NO_PASSWORD_ERROR
		return fmt.Errorf("log in as %s: %w", login.Username, engine.ErrRefused)
	case 1040, 1203, 1226: // ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED
		return fmt.Errorf("log in as %s: %w: %w", login.Username, engine.ErrFull, words)
	case 1044: // ER_DBACCESS_DENIED_ERROR
		words.Remedy = fmt.Sprintf("grant all on `%s`.* to '%s'@'%%'", login.Database, login.Username)
	case 1049: // ER_BAD_DB_ERROR
		words.Remedy = fmt.Sprintf("create database `%s`", login.Database)
	case 4151: // ER_ACCOUNT_HAS_BEEN_LOCKED
		words.Remedy = fmt.Sprintf("alter user '%s'@'%%' account unlock", login.Username)
	}
	return fmt.Errorf("log in as %s: %w", login.Username, words)
}
