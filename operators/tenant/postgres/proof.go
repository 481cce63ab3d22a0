package postgres

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// proof reads along with a login, and learns whether the server has accepted the password. The server verifies it before everything that a
// tenant can set: limits, rights and libraries (InitPostgres in PostgreSQL's postinit.c).
type proof struct {
	// authenticated means that the server has said that the password is right. accepted means that it then went on to talk with pgx, which
	// has then found that the server had to prove itself, as RequireAuth demands.
	authenticated, accepted atomic.Bool
}

// Write takes one line of the trace of a connection: a letter for the sender, the name of the message and its content, with tabs between them.
func (p *proof) Write(line []byte) (int, error) {
	switch {
	case !bytes.HasPrefix(line, []byte("B\t")):
	case p.authenticated.Load():
		p.accepted.Store(true)
	case bytes.HasPrefix(line, []byte("B\tAuthenticationOk\t")):
		p.authenticated.Store(true)
	}
	return len(line), nil
}

// follow makes each connection with these settings a proof of its own, and returns a function that reports whether one of them is one.
func follow(settings *pgx.ConnConfig) (accepted func() bool) {
	var all []*proof
	build := settings.BuildFrontend
	settings.BuildFrontend = func(from io.Reader, to io.Writer) *pgproto3.Frontend {
		made, frontend := &proof{}, build(from, to)
		frontend.Trace(made, pgproto3.TracerOptions{SuppressTimestamps: true})
		all = append(all, made)
		return frontend
	}
	return func() bool {
		for _, one := range all {
			if one.accepted.Load() {
				return true
			}
		}
		return false
	}
}

// afterPasswordError is why a login failed whose password the server had accepted.
type afterPasswordError struct{ error }

func (e afterPasswordError) Unwrap() error { return e.error }

// proves reports whether the result of a login proves that the password is right. The server also refuses a role that may not log in only after it has
// verified the password, but such a role has been retired meanwhile.
func proves(err error) bool {
	_, after := errors.AsType[afterPasswordError](err)
	return err == nil || after && codeOf(err) != notAllowed
}
