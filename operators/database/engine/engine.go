// Package engine describes what the operator asks of the servers of databases, whatever software they run: whether they accept a password, how full
// their volume is, with which configuration they run, and how their standbys are.
package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/einmal-operators/einmal/credential"
)

// ErrRefused means that the server said that the password is wrong, or that the user does not exist. It says the same in both cases.
var ErrRefused = errors.New("the server refuses the password")

// ErrFull means that the server accepts no further connection of the user now: there are as many as it or the user may have.
var ErrFull = errors.New("the user has all connections that it can have")

// AnswerError is a refusal of a login for another reason than the password or the number of connections. So the server can be reached.
type AnswerError struct {
	// Message are the words of the server, and Code is its code of the error.
	Message, Code string
	// Remedy is what the superuser of the server can do, or "" if that is not known.
	Remedy string
	// Passes reports whether the reason passes by itself, for example because the server starts.
	Passes bool
}

// longestText is the length in bytes of the longest text of a server in an error. A status has room for it.
const longestText = 500

// NewAnswerError returns an error with the words of a server, or with their beginning.
func NewAnswerError(message, code string) *AnswerError {
	if len(message) > longestText {
		message = message[:longestText] + "…"
	}
	return &AnswerError{Message: strings.ToValidUTF8(message, ""), Code: code}
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("the server answers %s (%s)", e.Message, e.Code)
}

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

// Server is what the operator asks of every server.
type Server interface {
	// Try logs in and out. It returns ErrRefused or ErrFull only if the server says so. It executes no statement: the database belongs to others, whose functions
	// must not run here.
	Try(ctx context.Context, login Login) error
	// Ask asks a server for its state. Only the monitor may ask.
	Ask(ctx context.Context, login Login) (State, error)
}

// Replicated is what the operator asks of servers that can have standbys. Package contract says what it expects.
type Replicated interface {
	Server
	// Release drops the slot of a standby that is not connected, so that the server keeps nothing for it any more. Only the monitor may do so. It does
	// nothing if there is no such slot.
	Release(ctx context.Context, login Login, slot string) error
	Promoter
}

// Promoter is what the operator asks for when another server becomes the primary. Only the monitor may do so.
type Promoter interface {
	// Checkpoint lets a server write what it has in memory, so that it ends quickly later. That can take a minute.
	Checkpoint(ctx context.Context, login Login) error
	// Replayed reports whether a standby has replayed the record of the write-ahead log that begins at a location, such as 0/3000028. A server that is
	// not a standby has.
	Replayed(ctx context.Context, login Login, location string) (bool, error)
	// Promote makes a standby a primary, with slots for the other servers, and returns when it accepts writes. It does nothing if the server is one with
	// these slots.
	Promote(ctx context.Context, login Login, slots []string) error
}
