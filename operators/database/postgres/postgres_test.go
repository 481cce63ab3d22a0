package postgres_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/postgres"
)

// pretender pretends to be a server: it reads the startup message and answers with what a function writes, until that fails.
func pretender(t *testing.T, answer func(to net.Conn) error) (engine.Login, <-chan map[string]string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	started := make(chan map[string]string, 1)
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = connection.Close() }()
		message, err := pgproto3.NewBackend(connection, connection).ReceiveStartupMessage()
		if startup, ok := message.(*pgproto3.StartupMessage); ok && err == nil {
			started <- startup.Parameters
		}
		for answer(connection) == nil {
		}
	}()
	address := listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // It listens on TCP.
	return engine.Login{Host: address.IP.String(), Port: uint16(address.Port), Database: "app", Username: "app"}, started
}

// The session of the operator has its own settings, whatever the parameters of the Database and the settings of its roles are.
func TestTheSessionsOfTheOperatorHaveTheirOwnSettings(t *testing.T) {
	t.Parallel()
	login, started := pretender(t, func(net.Conn) error { return net.ErrClosed })
	if err := (postgres.Client{}).Try(t.Context(), login); err == nil {
		t.Error("a server that says nothing lets the operator log in")
	}
	got := <-started
	for name, want := range map[string]string{
		"default_transaction_isolation": "read committed", "default_transaction_read_only": "off", "default_transaction_deferrable": "off",
		"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0",
		"work_mem":            "64MB",
		"client_min_messages": "error", "client_encoding": "UTF8", "search_path": "pg_catalog, pg_temp",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// A refused login names what the superuser can do about it, if that is known. Several refusals have the same code.
func TestARefusedLoginNamesWhatASuperuserCanDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code, message string
		want          engine.AnswerError
	}{
		{"28000", `role "app" is not permitted to log in`, engine.AnswerError{Remedy: `alter role "app" login`}},
		{"28000", `pg_hba.conf rejects connection for host "10.0.0.1"`, engine.AnswerError{}},
		{"3D000", `database "app" does not exist`, engine.AnswerError{Remedy: `create the database "app", or give it its name again`}},
		{"42501", `permission denied for database "app"`, engine.AnswerError{Remedy: `grant connect on database "app" to "app"`}},
		{"57P03", "the database system is starting up", engine.AnswerError{Passes: true}},
		{"XX000", "something else", engine.AnswerError{}},
	} {
		refusal, err := (&pgproto3.ErrorResponse{Severity: "FATAL", Code: test.code, Message: test.message}).Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		login, _ := pretender(t, func(connection net.Conn) error {
			_, _ = connection.Write(refusal) // The client says whether it has come.
			return net.ErrClosed
		})
		test.want.Code, test.want.Message = test.code, test.message
		got, ok := errors.AsType[*engine.AnswerError](postgres.Client{}.Try(t.Context(), login))
		if !ok || *got != test.want {
			t.Errorf("%s %s: %+v, want %+v", test.code, test.message, got, test.want)
		}
	}
}

// A server cannot make the operator read or keep more than a little, neither with one large message nor with many small ones.
func TestAServerCannotFillTheMemoryOfTheOperator(t *testing.T) {
	t.Parallel()
	const gigabyte = 1 << 30
	for name, answer := range map[string]func(to net.Conn) error{
		"one message of a gigabyte": func(to net.Conn) error {
			header := binary.BigEndian.AppendUint32([]byte{'N'}, gigabyte)
			_, err := to.Write(append(header, make([]byte, 1<<20)...))
			return err
		},
		"many settings": func(to net.Conn) error {
			text, err := (&pgproto3.ParameterStatus{Name: rand.Text(), Value: strings.Repeat("x", 1<<16)}).Encode(nil)
			if err == nil {
				_, err = to.Write(text)
			}
			return err
		},
		"many notices": func(to net.Conn) error {
			text, err := (&pgproto3.NoticeResponse{Message: strings.Repeat("x", 1<<16)}).Encode(nil)
			if err == nil {
				_, err = to.Write(text)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			login, _ := pretender(t, answer)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := postgres.Client{}.Try(ctx, login)
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; err == nil || grown > 32<<20 {
				t.Errorf("%d bytes were allocated: %v", grown, err)
			}
			t.Logf("%d bytes, %v", after.TotalAlloc-before.TotalAlloc, err)
		})
	}
}
