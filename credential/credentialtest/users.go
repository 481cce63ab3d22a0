package credentialtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// Users holds the users of a system in memory, such as those of a database. It is a fake for tests of code that creates, rotates and removes
// credentials. It exists longer than the processes of an operator, each of which uses it through a Session. A test reads here which users can log
// in, what was written, and who was locked out.
//
// Its only clock is time.Now, so it works in the virtual time of einmaltest and testing/synctest, and in real time. The zero value has no users.
// All methods are safe for concurrent use.
type Users struct {
	// Name is the name of the system in effects and in Broken, for tests with several systems. By default they contain only the user's name.
	Name string
	// Room is how many passwords a user can have at the same time: 1, as in PostgreSQL, or 2, as in Redis. The default is 1.
	Room int

	mu       sync.Mutex
	accounts map[string]*account
	// had contains the passwords that users got, including users that do not exist any more.
	had           map[string][]credential.Password
	promises      []promise
	broken        []string
	writes, tried int
}

// account is the state of a user.
type account struct {
	owner     credential.Owner
	passwords []credential.Password
	grants    string
	retired   bool
	// given identifies the record that the user got last; zero for a planted user.
	given credential.Given
}

func (a *account) accepts(password credential.Password) bool {
	return a != nil && !a.retired && slices.Contains(a.passwords, password)
}

// promise says that a user can log in with a password until a time.
type promise struct {
	username string
	password credential.Password
	until    time.Time
}

// Plant adds or replaces a user, as an administrator outside of the operator would: with an owner, or unmarked for the zero Owner, and with
// these passwords. It does not count as a write, and the passwords do not appear in Had.
func (u *Users) Plant(username string, owner credential.Owner, passwords ...credential.Password) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.put(username, &account{owner: owner, passwords: passwords})
}

// ChangePassword replaces all passwords of an existing user, as a person would. The user keeps its owner and its Given. It does not count as a
// write.
func (u *Users) ChangePassword(username string, password credential.Password) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.accounts[username]; known != nil {
		known.passwords = []credential.Password{password}
	}
}

// Disable prevents an existing user from logging in, as a person would. It does not count as a write.
func (u *Users) Disable(username string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.accounts[username]; known != nil {
		known.retired = true
	}
}

func (u *Users) put(username string, made *account) {
	if u.accounts == nil {
		u.accounts, u.had = map[string]*account{}, map[string][]credential.Password{}
	}
	u.accounts[username] = made
}

// Lose removes a user, like a cache that restarts without its users. It does not count as a write. Broken reports it only after the next write.
func (u *Users) Lose(username string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.accounts, username)
}

// Accepts reports whether a login with a credential works now. It compares only the username and the password, and does not count in Tried.
func (u *Users) Accepts(record credential.Record) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accounts[record.Username].accepts(record.Password)
}

// Promise declares that a credential must be accepted until a time. Users checks this after each write, and Broken reports violations. A second
// Promise for the same username and password replaces the first.
func (u *Users) Promise(record credential.Record, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	made := promise{record.Username, record.Password, until}
	u.promises = append(slices.DeleteFunc(u.promises, func(old promise) bool {
		return old.username == made.username && old.password == made.password
	}), made)
}

// Broken returns a line for each write that broke a Promise, with the write and the user that was locked out. It contains no passwords. It is
// empty if all promises were kept.
func (u *Users) Broken() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.broken)
}

// Had returns the passwords that a user got from Create and Set, in order. It includes passwords that the user no longer has, passwords of
// removed users, and repetitions.
func (u *Users) Had(username string) []credential.Password {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.had[username])
}

// Granted returns the Grants that a user has. It returns "" if the user does not exist.
func (u *Users) Granted(username string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.accounts[username]; known != nil {
		return known.grants
	}
	return ""
}

// Names returns the names of all users in alphabetical order, including users that cannot log in.
func (u *Users) Names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.accounts))
}

// Writes returns the number of writes so far, including rejected ones.
func (u *Users) Writes() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.writes
}

// Tried returns how many passwords Observe has tested so far.
func (u *Users) Tried() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tried
}

// called returns the name of a user for effects and Broken.
func (u *Users) called(username string) string {
	if u.Name == "" {
		return username
	}
	return u.Name + " " + username
}

// write makes a change, and then checks the promises.
func (u *Users) write(name string, change func() error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.writes++
	if err := change(); err != nil {
		return err
	}
	for _, made := range u.promises {
		if time.Now().Before(made.until) && !u.accounts[made.username].accepts(made.password) {
			u.broken = append(u.broken, name+" locks out "+u.called(made.username))
		}
	}
	return nil
}

// state returns the state of a user for an owner.
func (u *Users) state(owner credential.Owner, username string, password credential.Password) credential.State {
	known := u.accounts[username]
	switch {
	case known == nil:
		return credential.Absent
	case known.owner == credential.Owner{}:
		return credential.Unmarked
	case known.owner != owner:
		return credential.Foreign
	case known.retired:
		return credential.Retired
	case password.IsZero():
		return credential.Present
	}
	if u.tried++; known.accepts(password) {
		return credential.Accepted
	}
	return credential.Refused
}

// give sets a password of an existing user.
func (u *Users) give(owner credential.Owner, change credential.Assignment) error {
	known := u.accounts[change.Username]
	switch {
	case known == nil:
		return errors.New("there is no such user")
	case known.owner != owner && known.owner != credential.Owner{}:
		return credential.ErrConflict
	}
	if err := known.given.CheckSet(change.Record); err != nil {
		return err
	}
	var passwords []credential.Password
	if change.Keep && u.Room > 1 {
		passwords = slices.Clone(known.passwords)
	}
	if !slices.Contains(passwords, change.Password) {
		passwords = append(passwords, change.Password)
	}
	if room := max(u.Room, 1); len(passwords) > room {
		return fmt.Errorf("a user has no room for more passwords than %d", room)
	}
	known.owner, known.passwords, known.retired, known.given = owner, passwords, false, credential.GivenOf(change.Record)
	u.had[change.Username] = append(u.had[change.Username], change.Password)
	return nil
}

// active reports whether a user of the owner can log in.
func (u *Users) active(owner credential.Owner, username string) bool {
	known := u.accounts[username]
	return known != nil && known.owner == owner && !known.retired
}
